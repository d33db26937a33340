"""Segments: every run works in them, joined they are what one encoder would have written."""

import time
from dataclasses import replace

import av
import numpy as np
import pytest
from moving_pattern import pattern

from restore.errors import OutputError, UsageError
from restore.io import VideoReader, VideoWriter, from_rgb
from restore.pipeline import restore_video
from restore.workfolder import WorkFolder, fingerprint, work_folder

UNEVEN = [500, 540, 541, 600, 700, 701, 950, 1000, 1033, 1067, 2000, 2010, 2011, 2012, 2500, 2540,
          2580, 2581, 2640, 2700, 2750]  # fmt: skip
QUICK = {"libx264": {"preset": "veryfast"}, "libx265": {"preset": "ultrafast"}}


def shown(path):
    """Times and decoded planes of all frames."""
    with VideoReader(path) as reader:
        return [(f.time, [np.array(plane) for plane in f.planes]) for f in reader]


def packets(path, kind):
    with av.open(str(path)) as container:
        stream = container.streams.best(kind)
        found = [p for p in container.demux(stream) if p.size]
        return [
            (p.pts * p.time_base, None if p.dts is None else p.dts * p.time_base, bytes(p))
            for p in found
        ]


def assert_equal(first, second):
    assert len(first) == len(second) > 0
    for (shown_at, planes), (other, others) in zip(first, second, strict=True):
        assert shown_at == other
        for a, b in zip(planes, others, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("pts", [None, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize(
    ("codec", "suffix"),
    [
        *(("libx264", suffix) for suffix in (".mp4", ".mkv", ".mov", ".ts")),
        *(("libx265", suffix) for suffix in (".mp4", ".mkv")),
        *(("libsvtav1", suffix) for suffix in (".mp4", ".mkv", ".webm")),
        *(("libvpx-vp9", suffix) for suffix in (".webm", ".mp4")),
        ("libvpx", ".webm"),
        ("ffv1", ".mkv"),
        ("prores_ks", ".mov"),
        ("mpeg4", ".mp4"),
        ("mjpeg", ".mov"),
    ],
)
def test_the_joined_file_is_like_one_encoder_s(make_clip, tmp_path, codec, suffix, pts):
    audio = suffix in (".mp4", ".mkv")
    source = make_clip(
        "in.mkv",
        frames=21,
        pts=pts,
        audio=int(audio),
    )
    whole, joined = tmp_path / f"whole{suffix}", tmp_path / f"joined{suffix}"
    options = {"strength": 0, "codec": codec, "encoder_options": QUICK.get(codec, {})}
    restore_video(source, whole, segment=1000, **options)
    restore_video(source, joined, segment=8, **options)
    assert sorted(p.name for p in tmp_path.iterdir()) == [joined.name, whole.name]
    one, other = packets(whole, "video"), packets(joined, "video")
    assert sorted(p[0] for p in one) == sorted(p[0] for p in other)
    assert [p[1] for p in one] == [p[1] for p in other]
    decoding = [dts for _, dts, _ in other if dts is not None]
    assert decoding == sorted(set(decoding))
    assert all(dts is None or dts <= pts for pts, dts, _ in other)
    if audio:
        assert packets(whole, "audio") == packets(joined, "audio")
    # An MPEG transport stream has no times below 0: where one encoder begins later, so do many.
    expected = shown(whole if suffix == ".ts" else source)
    assert [f[0] for f in shown(joined)] == [f[0] for f in expected]
    with VideoReader(joined) as reader:
        list(reader)
        assert reader.damaged == 0


LOSSLESS = {"codec": "ffv1", "preset": "balanced", "segment": 8, "runtime": "onnx"}


def interrupted(source, target, after, *, segment=8, **options):
    """Interrupt a run when so many frames are restored and the writing thread has kept up."""
    kept = (after - 1) // segment  # a segment ends when the frame after it comes

    def stop(done: int, total: int | None) -> None:
        del total
        if done == after:
            manifest = work_folder(target) / "manifest.json"
            limit = time.monotonic() + 20
            while kept and (not manifest.exists() or manifest.read_text().count("sha") < kept):
                assert time.monotonic() < limit
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        restore_video(source, target, progress=stop, segment=segment, **options)
    assert not target.exists()
    return " ".join(caught.value.__notes__)


@pytest.fixture(scope="module")
def source(make_clip):
    return make_clip("in.mkv", frames=21, pts=UNEVEN, audio=1)


@pytest.fixture(scope="module")
def uninterrupted(source, tmp_path_factory):
    target = tmp_path_factory.mktemp("whole") / "out.mkv"
    return target, restore_video(source, target, **LOSSLESS)


@pytest.mark.parametrize("stops", [(3,), (9,), (12, 19), (17, 18, 21)], ids=str)
def test_a_resumed_run_gives_the_same_file(source, uninterrupted, tmp_path, stops):
    target = tmp_path / "out.mkv"
    kept = 0
    for stop in stops:
        note = interrupted(source, target, stop, **LOSSLESS, resume=True)
        kept = (stop - 1) // 8 * 8  # the ninth frame ends the first segment
        folder = work_folder(target)
        if kept:
            assert f"{kept} frames are kept in {folder}: add --resume" in note
            assert len(list(folder.glob("*.packets"))) == kept // 8
        else:
            assert "nothing is kept" in note
            assert not folder.exists()
    summary = restore_video(source, target, **LOSSLESS, resume=True)
    assert list(tmp_path.iterdir()) == [target]
    whole, first = uninterrupted
    assert (summary.frames, summary.resumed) == (21, kept)
    assert summary.sigma == first.sigma
    assert_equal(shown(whole), shown(target))
    for kind in ("video", "audio"):
        assert packets(whole, kind) == packets(target, kind)


def test_what_is_left_is_neither_used_nor_removed_unasked(source, tmp_path):
    target = tmp_path / "out.mkv"
    options = {"strength": 0, "segment": 8}
    interrupted(source, target, 20, **options)
    left = sorted(work_folder(target).iterdir())
    with pytest.raises(UsageError, match=r"16 frames in .*--resume .* --overwrite") as caught:
        restore_video(source, target, **options)
    assert "\n" not in str(caught.value)
    assert sorted(work_folder(target).iterdir()) == left
    summary = restore_video(source, target, **options, overwrite=True)
    assert summary.resumed == 0
    assert any("16 frames of an interrupted run were thrown away" in n for n in summary.notes)
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"crf": 20}, "crf"),
        ({"duration": 1}, "duration"),
        ({"encoder_options": {"preset": "fast"}}, "encoder_options"),
        ({"segment": 9}, "length of segments"),
        ({"strength": 0.5}, "runtime, strength, weights"),
    ],
)
def test_segments_of_other_settings_are_refused(source, tmp_path, change, named):
    target = tmp_path / "out.mkv"
    options = {"strength": 0, "segment": 8}
    interrupted(source, target, 10, **options)
    with pytest.raises(UsageError, match=f"another {named};"):
        restore_video(source, target, **options | change, resume=True)
    assert work_folder(target).is_dir()
    restore_video(source, target, **options, resume=True)


def test_segments_of_another_input_are_refused(source, clip, tmp_path):
    target = tmp_path / "out.mkv"
    interrupted(source, target, 10, strength=0, segment=8)
    with pytest.raises(UsageError, match="another input"):
        restore_video(clip, target, strength=0, segment=8, resume=True)


def test_the_fingerprint_follows_the_content(source, tmp_path):
    copy = tmp_path / "copy.mkv"
    content = bytearray(source.read_bytes())
    copy.write_bytes(content)
    assert fingerprint(copy) == fingerprint(source)
    content[-1] ^= 1
    copy.write_bytes(content)
    assert fingerprint(copy) != fingerprint(source)


@pytest.mark.parametrize("name", ["00000.packets", "state-00001.npz", "manifest.json"])
def test_damaged_work_is_told(source, tmp_path, name):
    target = tmp_path / "out.mkv"
    options = {"segment": 8, "preset": "fast"}
    interrupted(source, target, 10, **options)
    damaged = work_folder(target) / name
    damaged.write_bytes(damaged.read_bytes()[:-7])
    with pytest.raises(OutputError, match="is damaged; remove this folder"):
        restore_video(source, target, **options, resume=True)
    assert not target.exists()


def test_two_runs_do_not_write_the_same_file(source, tmp_path):
    target = tmp_path / "out.mkv"
    folder = WorkFolder(target, {}, resume=False, overwrite=False)
    with pytest.raises(OutputError, match="another run is writing it"):
        restore_video(source, target, strength=0, resume=True)
    assert folder.path.is_dir()
    folder.close(keep=False)
    restore_video(source, target, strength=0)


def test_a_folder_without_a_finished_segment_is_no_hindrance(source, tmp_path):
    target = tmp_path / "out.mkv"
    folder = work_folder(target)
    folder.mkdir()
    (folder / "00000.packets").write_bytes(b"begun, then killed")
    summary = restore_video(source, target, strength=0, segment=8)
    assert (summary.frames, summary.notes) == (21, [])
    assert list(tmp_path.iterdir()) == [target]


def write_shots(path, template, lengths):
    """Write shots of the moving pattern, each in other colours, to a lossless clip."""
    with VideoReader(template) as reader, VideoWriter(path, reader, codec="ffv1") as writer:
        frame = next(iter(reader))
        for shot, length in enumerate(lengths):
            for number in range(length):
                image = np.roll(pattern(number), shot, axis=2)[:: 1 - 2 * (shot % 2)]
                pts = None if writer.frames == 0 else 40 * writer.frames
                shown = from_rgb(image.astype(np.float32) / 255, replace(frame, pts=pts))
                writer.write(shown)
    return path


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [((6, 9), [6, 8, 1]), ((3, 9), [8, 4]), ((8, 2), [8, 2]), ((4, 4, 4), [4, 4, 4])],
)
def test_segments_end_at_cuts_from_half_their_length_on(clip, tmp_path, lengths, expected):
    source = write_shots(tmp_path / "in.mkv", clip, lengths)
    target = tmp_path / "out.mkv"
    quiet = {"sc_threshold": "0", "g": "1000"}  # the encoder begins anew only with a segment
    restore_video(source, target, preset="fast", segment=8, codec="libx264", encoder_options=quiet)
    with av.open(str(target)) as container:
        found = sorted((p.pts, p.is_keyframe) for p in container.demux(video=0) if p.size)
    starts = [number for number, (_, key) in enumerate(found) if key]
    assert np.diff([*starts, len(found)]).tolist() == expected


@pytest.mark.parametrize("suffix", ["%03d.png", ".apng"])
def test_other_outputs_are_not_resumed(make_clip, tmp_path, suffix):
    source = make_clip("in.mkv", codec="ffv1", pix_fmt="bgr0")
    summary = restore_video(source, tmp_path / f"out{suffix}", strength=0, resume=True)
    assert any("cannot be resumed" in note for note in summary.notes)
    assert summary.frames == 12


@pytest.mark.parametrize("name", ["x" * 245 + ".mkv", "日本語" * 25 + ".mkv", "a 'b\".mkv"])
def test_difficult_names(clip, tmp_path, name):
    target = tmp_path / name
    interrupted(clip, target, 9, strength=0, segment=4)
    assert work_folder(target).name.startswith(".")
    assert restore_video(clip, target, strength=0, segment=4, resume=True).resumed == 8
    assert list(tmp_path.iterdir()) == [target]
