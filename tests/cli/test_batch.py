"""Many files at once, pipes, and names of every kind, through the command's own main function."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import av
import pytest

from restore.cli.batch import find_inputs, plan_outputs
from restore.cli.denoise import main
from restore.errors import InputError, UsageError
from restore.io import VideoReader


def frames_in(path: Path) -> int:
    with VideoReader(path) as reader:
        return sum(1 for _ in reader)


def quick(*argv: object) -> int:
    return main(["--strength", "0", *map(str, argv)])


@pytest.fixture
def folder(tmp_path, clip, audio_clip):
    """Two videos, one broken one, and what is no video."""
    source = tmp_path / "in"
    source.mkdir()
    shutil.copy(clip, source / "a.mkv")
    shutil.copy(audio_clip, source / "b.mkv")
    (source / "broken.mp4").write_bytes(b"no video at all" * 9)
    (source / "notes.txt").write_text("no video")
    return source


def test_a_folder_one_failure_does_not_stop_the_rest(folder, tmp_path, capsys):
    out = tmp_path / "new" / "out"
    assert quick(folder, "--out-dir", out) == 3
    assert sorted(p.name for p in out.iterdir()) == ["a.mkv", "b.mkv"]
    assert frames_in(out / "b.mkv") == 12
    told = capsys.readouterr().err.splitlines()
    assert told[-1] == "2 done, 1 failed"
    row = next(line for line in told if line.startswith("broken.mp4"))
    assert "failed" in row
    assert "not a readable media file" in row


def test_finished_files_are_skipped_unless_overwritten(folder, tmp_path, capsys):
    out = tmp_path / "out"
    quick(folder / "a.mkv", "--out-dir", out)
    before = (out / "a.mkv").stat().st_mtime_ns
    assert quick(folder / "a.mkv", folder / "b.mkv", "--out-dir", out) == 0
    assert capsys.readouterr().err.splitlines()[-1] == "1 done, 1 skipped"
    assert (out / "a.mkv").stat().st_mtime_ns == before
    assert quick(folder / "a.mkv", "--out-dir", out, "--overwrite") == 0
    assert (out / "a.mkv").stat().st_mtime_ns > before


def test_patterns_are_understood_without_a_shell(folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert quick(folder / "[ab].mkv", "--out-dir", out, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [item["state"] for item in told] == ["done", "done"]
    assert [item["frames"] for item in told] == [12, 12]
    with pytest.raises(InputError, match="no file matches"):
        find_inputs([str(folder / "*.mov")])
    assert quick(folder / "*.mov", "--out-dir", out) == 3


def test_a_folder_of_pictures_is_one_sequence(clip, tmp_path):
    pictures = tmp_path / "shot"
    pictures.mkdir()
    assert quick(clip, pictures / "%03d.png") == 0
    assert quick(pictures, "--out-dir", tmp_path / "out") == 0
    assert len(list((tmp_path / "out" / "shot").iterdir())) == 12


def test_folders_in_a_folder_are_not_entered_in_silence(clip, tmp_path, capsys):
    (tmp_path / "films" / "more").mkdir(parents=True)
    shutil.copy(clip, tmp_path / "films" / "more")
    assert quick(tmp_path / "films", "--out-dir", tmp_path / "out") == 3
    assert "are not entered" in capsys.readouterr().err
    assert quick(tmp_path / "films" / "more", tmp_path / "out.mkv") == 3
    assert "for its videos add --out-dir" in capsys.readouterr().err


def test_outputs_never_collide(folder, tmp_path):
    with pytest.raises(UsageError, match="holds the inputs"):
        plan_outputs([folder / "a.mkv"], folder)
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(folder / "a.mkv", other)
    with pytest.raises(UsageError, match="the same file"):
        plan_outputs([folder / "a.mkv", other / "a.mkv"], tmp_path / "out")


def test_an_interrupted_batch_says_how_far_it_came(folder, tmp_path, capsys, monkeypatch):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("restore.pipeline.restore_video", stop)
    assert quick(folder / "a.mkv", folder / "b.mkv", "--out-dir", tmp_path / "out") == 5
    assert "1 failed, 1 not begun" in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []


NAMES = ["with space.mkv", 'it\'s "quoted".mkv', "日本語の映画.mkv", "🎬.mkv", "x" * 200 + ".mkv"]


@pytest.mark.parametrize("name", [*NAMES, "-dash.mkv", "100%d.mkv", "a;b&c$(d).mkv", "[x]*.mkv"])
def test_names_of_every_kind(clip, tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(clip, tmp_path / name)
    (tmp_path / "out").mkdir()
    assert quick("--", name, f"out/{name}") == 0
    assert frames_in(tmp_path / "out" / name) == 12
    assert quick("--out-dir", "again", "--", name) == 0
    assert [p.name for p in (tmp_path / "again").iterdir()] == [name]


def test_folders_that_are_missing_or_read_only(clip, tmp_path, capsys):
    assert quick(clip, tmp_path / "missing" / "out.mkv") == 4
    assert "create" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert quick(clip, "--out-dir", tmp_path / "file") == 4
    assert capsys.readouterr().err.count("\n") == 1
    locked = tmp_path / "locked"
    locked.mkdir()
    locked.chmod(0o500)
    if os.access(locked, os.W_OK):
        pytest.skip("this user may write everywhere")
    assert quick(clip, locked / "out.mkv") == 4


def test_paths_that_cannot_even_be_looked_at(clip, tmp_path, capsys):
    """Each in one line with its own exit code, in a batch without stopping the rest."""
    long = "x" * 300 + ".mkv"
    assert quick(long, tmp_path / "out.mkv") == 3
    assert quick(clip, tmp_path / long) == 4
    assert quick(long, clip, "--out-dir", tmp_path / "out") == 3
    told = capsys.readouterr().err
    assert "unexpected" not in told
    assert told.count("name too long") >= 3


def test_what_is_no_place_for_a_video(clip, tmp_path, capsys):
    place = tmp_path / "place"
    place.mkdir()
    assert quick(clip, place) == 4
    assert f"add --out-dir {place}" in capsys.readouterr().err
    assert quick(clip, place / "%03d.png") == 0
    assert quick(place, tmp_path / "again.mkv") == 0
    assert quick("http://example.com/a.mp4", tmp_path / "out.mkv") == 3
    assert "download it first" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert quick(clip, tmp_path / "file" / "out.mkv") == 4
    assert "is not a folder" in capsys.readouterr().err


def test_pipes_by_name_are_refused_at_once(clip, tmp_path, capsys):
    """Nobody writes to this one: opening it would wait for ever."""
    os.mkfifo(tmp_path / "pipe.mkv")
    assert quick(tmp_path / "pipe.mkv", tmp_path / "out.mkv") == 3
    assert "save it as a file" in capsys.readouterr().err
    assert quick(clip, tmp_path / "pipe.mkv", "--overwrite") == 4
    assert "for a pipe give -" in capsys.readouterr().err


def test_a_leading_dash_is_explained(clip, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(clip, "-in.mkv")
    with pytest.raises(SystemExit):
        quick("-in.mkv", "out.mkv")
    assert "go after --" in capsys.readouterr().err


def test_sound_and_subtitles_can_be_left_out(audio_clip, tmp_path):
    assert quick(audio_clip, tmp_path / "out.mkv", "--no-audio") == 0
    with av.open(str(tmp_path / "out.mkv")) as container:
        assert [s.type for s in container.streams] == ["video"]


def command(*argv: object) -> list[str]:
    return [sys.executable, "-m", "restore.cli.denoise", *map(str, argv), "--strength", "0"]


@pytest.mark.parametrize("pix_fmt", ["yuv420p", "yuv422p10le", "gray"])
def test_y4m_through_pipes(make_clip, tmp_path, pix_fmt):
    source = make_clip("in.mkv", codec="ffv1", pix_fmt=pix_fmt, size=(46, 38))
    first = subprocess.run(command(source, "-"), capture_output=True, timeout=120)
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith(b"YUV4MPEG2 W46 H38 F25:1 ")
    second = subprocess.run(
        command("-", "-", "--json"), input=first.stdout, capture_output=True, timeout=120
    )
    assert second.stdout == first.stdout
    assert json.loads(second.stderr)["frames"] == 12
    third = subprocess.run(
        command("-", tmp_path / "out.mkv", "--codec", "ffv1"),
        input=first.stdout,
        capture_output=True,
        timeout=120,
    )
    assert third.returncode == 0, third.stderr
    with VideoReader(source) as a, VideoReader(tmp_path / "out.mkv") as b:
        for one, other in zip(a, b, strict=True):
            assert all((p == q).all() for p, q in zip(one.planes, other.planes, strict=True))


def test_other_things_through_the_pipe_are_refused():
    done = subprocess.run(command("-", "-"), input=b"RIFF" * 40, capture_output=True, timeout=120)
    assert done.returncode == 3
    assert done.stdout == b""
    assert b"yuv4mpegpipe" in done.stderr
    assert quick("-", "--out-dir", "x") == 2


def test_a_reader_that_has_gone_ends_the_run_quietly(make_clip):
    """As before `| head`: nothing to tell, and the exit code of a broken pipe."""
    source = make_clip("in.mkv", codec="ffv1", size=(320, 240), frames=8)
    run = subprocess.Popen(command(source, "-"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stderr is not None
    run.stdout.read(100)
    run.stdout.close()
    assert run.stderr.read() == b""
    assert run.wait(120) == 141


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_do_no_harm(clip, tmp_path, closed):
    """As under some schedulers: no file may be taken for the missing stream."""
    target = tmp_path / "out.mkv"
    line = shlex.join(command(clip, target, "--json")) + " " + closed
    assert subprocess.run(line, shell=True, timeout=120).returncode == 0
    assert frames_in(target) == 12
