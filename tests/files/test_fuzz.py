"""Damaged and hostile files: no crash, no hang, nothing under the final name after an error."""

import os
import struct
from fractions import Fraction
from pathlib import Path

import pytest
from fuzzing import LARGEST, fuzz

from restore.cli.denoise import main
from restore.errors import InputError
from restore.io import VideoReader


@pytest.fixture
def small_files(make_clip) -> list[Path]:
    """Tiny files of the usual containers and codecs."""
    return [
        make_clip("a.mp4", frames=3, audio=1),
        make_clip("b.mkv", frames=3, audio=1),
        make_clip("c.avi", frames=3, codec="mpeg4", time_base=Fraction(1, 25), pts=[0, 1, 2]),
        make_clip("d.ts", frames=3),
        make_clip("e.webm", frames=3, codec="libvpx-vp9"),
        make_clip("f.mov", frames=2, codec="prores_ks", pix_fmt="yuv422p10le"),
        make_clip("g.mkv", frames=3, codec="ffv1"),
    ]


def problems(verdicts) -> list[str]:
    return [f"{v.number} {v.source}: {v.problem}" for v in verdicts if v.problem]


def test_damaged_files(small_files, tmp_path):
    assert problems(fuzz(small_files, 35, tmp_path)) == []


@pytest.mark.fuzz
def test_two_thousand_damaged_files(small_files, tmp_path):
    data = Path(os.environ.get("RESTORE_TEST_DATA", "missing")) / "odd_files"
    odd = sorted(p for p in data.rglob("*") if p.is_file() and 0 < p.stat().st_size < LARGEST)
    assert problems(fuzz([*small_files, *odd], 2000, tmp_path)) == []


def test_absurd_sizes_are_refused_with_a_way_out(make_clip, tmp_path, capsys):
    path = make_clip("in.mkv", frames=2)
    assert main([str(path), str(tmp_path / "out.mkv"), "--max-pixels", "3000"]) == 3
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "64x48" in told
    assert "--max-pixels" in told
    bmp = struct.pack("<2sIHHI", b"BM", 1 << 20, 0, 0, 54)
    bmp += struct.pack("<IiiHHIIiiII", 40, 60000, 60000, 1, 24, 0, 0, 0, 0, 0, 0) + bytes(1000)
    bomb = tmp_path / "bomb.bmp"
    bomb.write_bytes(bmp)
    assert main([str(bomb), str(tmp_path / "out.png")]) == 3
    assert not (tmp_path / "out.png").exists()


PLAYLISTS = {
    "list.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{name}\n#EXT-X-ENDLIST\n",
    "list.mp4": "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://127.0.0.1:9/x.ts\n",
    "list.ffconcat": "ffconcat version 1.0\nfile {name}\n",
    "list.mkv": "ffconcat version 1.0\nfile {name}\n",
    "list.sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=video 9 RTP/AVP 96\n",
    "list.mpd": "<?xml version='1.0'?><MPD xmlns='urn:mpeg:dash:schema:mpd:2011'></MPD>",
    "list.svg": "<svg xmlns='http://www.w3.org/2000/svg'><image href='{name}'/></svg>",
}


@pytest.mark.parametrize("name", PLAYLISTS)
def test_files_that_name_others_are_not_followed(clip, tmp_path, name):
    (tmp_path / "clip.mkv").write_bytes(clip.read_bytes())
    path = tmp_path / name
    path.write_text(PLAYLISTS[name].format(name="clip.mkv"))
    with pytest.raises(InputError):
        VideoReader(path)


def test_strict_makes_damage_an_error(make_clip, tmp_path, capsys):
    whole = make_clip("in.mp4", frames=40, options={"g": "5"})
    data = whole.read_bytes()
    place = data.find(b"mdat") + 4
    size = len(data) - place
    damaged = tmp_path / "damaged.mp4"
    damaged.write_bytes(data[: place + size // 3] + b"\xff" * 300 + data[place + size // 3 + 300 :])
    target = tmp_path / "out.mkv"
    assert main([str(damaged), str(target), "--strength", "0"]) == 0
    assert "damaged packets or pictures" in capsys.readouterr().err
    target.unlink()
    assert main([str(damaged), str(target), "--strength", "0", "--strict"]) == 3
    assert "without --strict" in capsys.readouterr().err
    assert not target.exists()
    assert main([str(whole), str(target), "--strength", "0", "--strict"]) == 0


def test_a_file_that_was_cut_off_says_how_much_is_missing(make_clip, tmp_path, capsys):
    whole = make_clip("in.mkv", frames=100, options={"g": "5"})
    short = tmp_path / "short.mkv"
    short.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    target = tmp_path / "out.mkv"
    assert main([str(short), str(target), "--strength", "0"]) == 0
    assert "was cut off" in capsys.readouterr().err
    target.unlink()
    assert main([str(short), str(target), "--strength", "0", "--strict"]) == 3
    assert not target.exists()
