"""What used to be lost or refused on the way into a container: GIF, alpha, text, small HEVC."""

from dataclasses import replace
from fractions import Fraction

import av
import numpy as np
import pytest

from restore.io import VideoReader, VideoWriter
from restore.io.convert import convert
from restore.io.frame import ColorSpec, Frame, PixelFormat
from restore.io.subtitles import rewriting


def copy(source, target, *, paint=None, **options):
    """Send a file through reader and writer, frames changed by `paint`; return all notes."""
    with VideoReader(source) as reader, VideoWriter(target, reader, **options) as writer:
        for number, frame in enumerate(reader):
            writer.write(paint(frame, number) if paint else frame)
    return reader.notes + writer.notes


def read(path):
    with VideoReader(path) as reader:
        return [(f.time, [p.copy() for p in f.planes], f.alpha) for f in reader]


def few_colours(frame, number):
    """Return the frame in four colours, with a transparent corner."""
    rows = np.arange(frame.height)[:, None] + np.zeros((1, frame.width), int) + number
    planes = tuple(((rows // (4 + i)) % 4 * 60).astype(np.uint8) for i in range(3))
    alpha = np.full(rows.shape, 255, np.uint8)
    alpha[:8, :8] = 0
    return replace(
        frame, planes=planes, alpha=alpha, format=PixelFormat.build("rgb", 8, alpha=True)
    )


def test_gif_keeps_times_alpha_and_up_to_255_colours(make_clip, tmp_path):
    source = make_clip("in.mkv", codec="ffv1", pix_fmt="bgra", pts=[0, 50, 200, 210, 400], frames=5)
    target = tmp_path / "out.gif"
    painted = tmp_path / "painted.mkv"
    copy(source, painted, paint=few_colours)
    notes = copy(painted, target)
    assert any("gif" in note for note in notes)
    for (time, planes, alpha), (there, others, seen) in zip(
        read(painted), read(target), strict=True
    ):
        assert time == there
        shown = alpha > 0
        np.testing.assert_array_equal(alpha, seen)
        for a, b in zip(planes, others, strict=True):
            np.testing.assert_array_equal(a[shown], b[shown])


def test_vp9_keeps_its_transparency(make_clip, tmp_path):
    source = make_clip("in.mkv", codec="ffv1", pix_fmt="yuva420p", frames=4)

    def hole(frame, number):
        alpha = np.full((frame.height, frame.width), 255, np.uint8)
        alpha[8:24, 8 + number : 24 + number] = 0
        return replace(frame, alpha=alpha)

    first, second = tmp_path / "a.webm", tmp_path / "b.webm"
    copy(source, first, paint=hole, codec="libvpx-vp9")
    copy(first, second)
    with VideoReader(second) as reader:
        assert reader.info.format.name == "yuva420p"
        for number, frame in enumerate(reader):
            assert frame.alpha[12:20, 14 + number : 20 + number].max() < 30
            assert frame.alpha[30:, :].min() > 225


def test_hevc_below_64_pixels_is_written_as_h264(make_clip, tmp_path):
    source = make_clip("in.mkv", frames=3, size=(48, 32))
    for options in ({"codec": "libx265"}, {"codec": "hevc", "pix_fmt": "yuv420p10le"}):
        notes = copy(source, tmp_path / "out.mkv", overwrite=True, **options)
        assert any("libx264" in note for note in notes)
        with VideoReader(tmp_path / "out.mkv") as reader:
            assert reader.info.codec == "h264"
            assert len(list(reader)) == 3


@pytest.mark.parametrize(
    ("own", "wanted", "matrix"),
    [
        ("yuva444p12le", "yuva444p16le", "bt709"),
        ("yuv420p", "yuv420p10le", "bt601"),
        ("gbrp9le", "gbrp16le", "rgb"),
        ("gray", "gray16le", "bt709"),
    ],
)
def test_deeper_samples_give_the_old_ones_back(own, wanted, matrix):
    fmt, deeper = PixelFormat.from_name(own), PixelFormat.from_name(wanted)
    chance = np.random.default_rng(3)

    def plane(shape):
        return chance.integers(0, fmt.maximum, shape, endpoint=True).astype(fmt.dtype)

    count = 1 if fmt.family == "gray" else 3
    small = fmt.chroma_size(12, 16)
    planes = tuple(plane((12, 16) if i == 0 else small) for i in range(count))
    alpha = plane((12, 16)) if fmt.alpha else None
    color = ColorSpec(matrix, full_range=fmt.family != "yuv")
    frame = Frame(planes, fmt, color, Fraction(1, 25), alpha=alpha)
    result = convert(frame, deeper, color)
    shift = deeper.depth - fmt.depth
    for old, new in zip(planes, result.planes, strict=True):
        np.testing.assert_array_equal(new >> shift, old)
    if alpha is not None:
        np.testing.assert_array_equal(result.alpha >> shift, alpha)
        assert result.alpha[alpha == fmt.maximum].min(initial=deeper.maximum) == deeper.maximum


ASS = rb"0,0,Default,,0,0,0,,{\i1}Hello,{\i0} there\Nyou"


@pytest.mark.parametrize(
    ("codec", "container", "data", "name", "result"),
    [
        ("mov_text", "matroska", b"\0\5Hello\0\0\0\x16styl", "subrip", b"Hello"),
        ("mov_text", "matroska", b"\0\0", "subrip", b""),
        ("ass", "mp4", ASS, "mov_text", b"\0\x10Hello, there\nyou"),
        ("subrip", "mp4", b"<i>Hi</i> 1 < 2", "mov_text", b"\0\x08Hi 1 < 2"),
        ("subrip", "webm", "Zoë\r\n".encode(), "webvtt", "Zoë".encode()),
    ],
)
def test_words_of_subtitles_survive(codec, container, data, name, result):
    target, rewrite = rewriting(codec, container)
    assert target == name
    assert rewrite(data) == result


def test_subtitles_that_are_pictures_are_not_text():
    assert rewriting("hdmv_pgs_subtitle", "mp4") is None
    assert rewriting("ass", "avi") is None


def test_text_subtitles_reach_mp4_and_come_back(make_clip, tmp_path):
    def speak(output, stream):
        text = output.add_mux_stream("subrip")
        text.metadata["language"] = "fin"
        words = av.Packet("Hyvää huomenta".encode())
        words.pts = words.dts = 40
        words.duration, words.time_base, words.stream = 200, Fraction(1, 1000), text
        output.mux(words)

    source = make_clip("in.mkv", setup=speak)
    copy(source, tmp_path / "a.mp4")
    notes = copy(tmp_path / "a.mp4", tmp_path / "b.mkv")
    assert any("subrip" in note for note in notes)
    with av.open(str(tmp_path / "b.mkv")) as container:
        (stream,) = container.streams.subtitles
        assert stream.language == "fin"
        shown = [p for p in container.demux(stream) if p.size]
        assert [bytes(p).decode() for p in shown] == ["Hyvää huomenta"]
        assert shown[0].pts * shown[0].time_base == Fraction(40, 1000)


def test_the_second_of_two_videos_may_be_the_longer_one(make_clip, tmp_path):
    def second(output, stream):
        other = output.add_stream("libx264", rate=25)
        other.width, other.height, other.pix_fmt = 96, 64, "yuv420p"
        for number in range(20):
            picture = av.VideoFrame.from_ndarray(np.full((96, 96), 9 * number, np.uint8), "yuv420p")
            picture.pts, picture.time_base = number, Fraction(1, 25)
            output.mux(other.encode(picture))
        output.mux(other.encode(None))

    source = make_clip("in.mkv", frames=5, setup=second)
    copy(source, tmp_path / "out.mkv")
    with av.open(str(tmp_path / "out.mkv")) as container:
        assert [s.width for s in container.streams.video] == [64, 96]
        packets = [p.stream_index for p in container.demux(video=(0, 1)) if p.size]
        assert [packets.count(0), packets.count(1)] == [5, 20]


@pytest.mark.parametrize("name", ["out.mp4", "out.mov", "out.mkv"])
def test_tags_of_phones_are_kept(make_clip, tmp_path, name):
    tags = {"com.apple.quicktime.model": "Phone 9", "com.android.version": "14", "title": "Film"}

    def tag(output, stream):
        output.container_options["movflags"] = "use_metadata_tags"
        output.metadata.update(tags)

    source, target = make_clip("in.mov", setup=tag, frames=2), tmp_path / name
    copy(source, target)
    with av.open(str(target)) as container:
        there = {key.lower(): value for key, value in container.metadata.items()}
    assert tags.items() <= there.items()
