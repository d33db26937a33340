"""Interlaced pictures: woven in the test from moments that are known."""

from fractions import Fraction

import av
import numpy as np
import pytest

from restore.errors import UsageError
from restore.io import VideoReader, VideoWriter
from restore.pipeline import restore_video

SIZE = (128, 96)


def moment(number: int) -> np.ndarray:
    """Return a soft picture of a disc that moves 4 pixels a field; (96, 128) uint8."""
    y, x = np.mgrid[0 : SIZE[1], 0 : SIZE[0]].astype(float)
    distance = np.hypot(x - 10 - 2.5 * number, y - 48)
    return np.rint(60 + 130 / (1 + np.exp((distance - 24) / 1.5))).astype(np.uint8)


def woven(number: int, order: str) -> np.ndarray:
    """Return the frame that holds moments 2n and 2n + 1."""
    first, second = (0, 1) if order == "tff" else (1, 0)
    frame = np.empty(SIZE[::-1], np.uint8)
    frame[first::2] = moment(2 * number)[first::2]
    frame[second::2] = moment(2 * number + 1)[second::2]
    return frame


@pytest.fixture
def interlaced(make_clip, tmp_path):
    """Return a function that writes 16 woven frames, flagged or not."""

    def make(order: str, *, flagged: bool):
        plain = make_clip("plain.mkv", frames=16, size=SIZE, codec="ffv1")
        target = tmp_path / f"{order}{flagged}.mkv"
        with VideoReader(plain) as reader:
            object.__setattr__(reader.info, "field_order", order if flagged else "progressive")
            options = {"codec": "libx264", "crf": 1}
            with VideoWriter(target, reader, **options) as writer:
                for number, frame in enumerate(reader):
                    chroma = frame.planes[1:]
                    planes = (woven(number, order), *(np.full_like(p, 128) for p in chroma))
                    object.__setattr__(frame, "planes", planes)
                    writer.write(frame)
        return target

    return make


def read(path, **options):
    with VideoReader(path, **options) as reader:
        frames = [(f.time, f.planes[0].copy(), f.interlaced) for f in reader]
        return frames, reader


@pytest.mark.parametrize("order", ["tff", "bff"])
def test_one_frame_for_one_at_its_own_moment(interlaced, order):
    path = interlaced(order, flagged=True)
    kept, _ = read(path)
    frames, reader = read(path, deinterlace="auto")
    assert [f[0] for f in frames] == [f[0] for f in kept]
    assert all(f[2] for f in kept)
    assert not any(f[2] for f in frames)
    assert reader.info.field_order == "progressive"
    assert any("deinterlaced" in note for note in reader.notes)
    for number in range(2, 14):
        before = np.abs(kept[number][1].astype(int) - moment(2 * number)).mean()
        after = np.abs(frames[number][1].astype(int) - moment(2 * number)).mean()
        assert after < 0.5 * before


def test_combs_that_are_flagged_progressive_are_named(interlaced):
    path = interlaced("bff", flagged=False)
    frames, reader = read(path, deinterlace="auto")
    assert any("looks interlaced (bottom field first)" in note for note in reader.notes)
    assert len(frames) == 16
    treated, _ = read(path, deinterlace="on")
    assert len(treated) == 16
    assert (treated[8][1] != frames[8][1]).any()


def test_progressive_pictures_are_not_suspected(make_clip):
    path = make_clip("in.mkv", frames=30, size=SIZE)
    frames, reader = read(path, deinterlace="auto")
    assert len(frames) == 30
    assert reader.notes == []


@pytest.mark.parametrize("count", [1, 2, 3])
def test_short_clips_keep_their_frames(make_clip, count):
    path = make_clip("in.mkv", frames=count)
    assert len(read(path, deinterlace="on")[0]) == count


def test_telecine_is_named(make_clip):
    """Film frames A B C D become five: AA, BB, BC, CD, DD, of which two are woven."""

    def film(number):
        cycle, place = divmod(number, 5)
        top = 4 * cycle + (0, 1, 1, 2, 3)[place]
        bottom = 4 * cycle + (0, 1, 2, 3, 3)[place]
        frame = moment(2 * top)
        frame[1::2] = moment(2 * bottom)[1::2]
        return frame

    path = make_clip("in.mkv", frames=20, size=SIZE, codec="ffv1", pix_fmt="gray")
    target = path.with_name("film.mkv")
    with VideoReader(path) as reader, VideoWriter(target, reader) as writer:
        for number, frame in enumerate(reader):
            object.__setattr__(frame, "planes", (film(number),))
            writer.write(frame)
    _, reader = read(target)
    assert any("telecined film" in note for note in reader.notes)


def test_never_at_strength_0_and_marked_progressive_otherwise(interlaced, tmp_path):
    path = interlaced("tff", flagged=True)
    restore_video(path, tmp_path / "same.mkv", strength=0, codec="ffv1")
    kept, _ = read(path)
    same, _ = read(tmp_path / "same.mkv")
    assert all((a[1] == b[1]).all() for a, b in zip(kept, same, strict=True))
    restore_video(path, tmp_path / "clean.mkv", preset="fast", sigma=0.02, runtime="onnx")
    clean, reader = read(tmp_path / "clean.mkv")
    assert reader.info.field_order == "progressive"
    assert [f[0] for f in clean] == [f[0] for f in kept]


def test_unknown_choice(clip):
    with pytest.raises(UsageError, match="deinterlace"):
        VideoReader(clip, deinterlace="perhaps")


def test_rate_of_time_is_kept_by_the_graph(make_clip):
    """Uneven times pass through the filter, which itself knows nothing of them."""
    stamps = [0, 7, 20, 21, 300]
    path = make_clip("vfr.mkv", pts=stamps, frames=5)
    frames, _ = read(path, deinterlace="on")
    assert [f[0] for f in frames] == [Fraction(s, 1000) for s in stamps]
    with av.open(str(path)) as container:
        assert container.streams.video[0].time_base == Fraction(1, 1000)
