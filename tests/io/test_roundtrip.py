"""Reader to writer and back: planes, times, and everything else in the file."""

import os
from fractions import Fraction

import av
import numpy as np
import pytest
from av.stream import Disposition

from restore.errors import InputError, OutputError, UsageError
from restore.io import VideoReader, VideoWriter, add_residual, to_rgb

TAGS = {"bt601": 6, "bt709": 1, "bt2020": 9}


def tag(matrix, full):
    def setup(output, stream):
        del output
        context = stream.codec_context
        context.colorspace, context.color_range = TAGS[matrix], 2 if full else 1

    return setup


def copy(source, target, *, strength=None, **options):
    """Send a file through reader and writer; return the reader's and writer's notes."""
    with VideoReader(source) as reader, VideoWriter(target, reader, **options) as writer:
        for frame in reader:
            if strength is not None:
                rgb = to_rgb(frame)
                frame = add_residual(frame, np.zeros_like(rgb) * strength)
            writer.write(frame)
    return reader.notes + writer.notes


def frames_of(path):
    with VideoReader(path) as reader:
        return [
            (f.time, [p.copy() for p in f.planes], None if f.alpha is None else f.alpha.copy())
            for f in reader
        ]


def assert_same_pictures(first, second):
    first, second = frames_of(first), frames_of(second)
    assert len(first) == len(second) > 0
    for (time, planes, alpha), (other_time, others, other_alpha) in zip(first, second, strict=True):
        assert time == other_time
        for a, b in zip(planes, others, strict=True):
            np.testing.assert_array_equal(a, b)
        if alpha is not None:
            np.testing.assert_array_equal(alpha, other_alpha)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("matrix", TAGS)
@pytest.mark.parametrize(
    "pix_fmt", ["yuv420p", "yuv422p", "yuv444p", "yuv420p10le", "yuv422p10le", "gray", "bgr0"]
)
def test_identity_through_ffv1(make_clip, tmp_path, pix_fmt, matrix, full):
    source = make_clip(
        "in.mkv", frames=2, codec="ffv1", pix_fmt=pix_fmt, setup=tag(matrix, full), size=(46, 38)
    )
    target = tmp_path / "out.mkv"
    copy(source, target, strength=0, codec="ffv1")
    assert_same_pictures(source, target)
    with VideoReader(source) as a, VideoReader(target) as b:
        assert a.info.color == b.info.color
        assert a.info.format == b.info.format


def test_alpha_is_kept_bit_for_bit(make_clip, tmp_path):
    source = make_clip("in.mkv", frames=2, codec="ffv1", pix_fmt="yuva444p10le")
    copy(source, tmp_path / "out.mkv")
    assert_same_pictures(source, tmp_path / "out.mkv")


def test_odd_size_survives_ffv1_and_becomes_444_in_x264(odd_clip, tmp_path):
    copy(odd_clip, tmp_path / "a.mkv")
    assert_same_pictures(odd_clip, tmp_path / "a.mkv")
    notes = copy(odd_clip, tmp_path / "b.mp4", codec="libx264")
    assert any("yuv444p" in note and "63x47" in note for note in notes)
    with VideoReader(tmp_path / "b.mp4") as reader:
        assert (reader.info.width, reader.info.height) == (63, 47)
        assert len(list(reader)) == 12


@pytest.mark.parametrize("suffix", [".mkv", ".mp4", ".mov"])
def test_uneven_timestamps_are_kept(vfr_clip, tmp_path, suffix):
    target = tmp_path / f"out{suffix}"
    copy(vfr_clip, target)
    assert [f[0] for f in frames_of(target)] == [f[0] for f in frames_of(vfr_clip)]


@pytest.mark.parametrize("name", ["one_frame_clip", "two_frame_clip"])
def test_shortest_clips(request, tmp_path, name):
    source = request.getfixturevalue(name)
    copy(source, tmp_path / "out.mp4")
    assert [f[0] for f in frames_of(tmp_path / "out.mp4")] == [f[0] for f in frames_of(source)]


def rich(output, stream):
    stream.set_display_rotation(90)
    context = stream.codec_context
    context.sample_aspect_ratio = Fraction(4, 3)
    context.colorspace, context.color_range = 9, 1
    context.color_primaries, context.color_trc = 9, 16
    stream.metadata["language"] = "fin"
    for index, other in enumerate(output.streams.audio):
        other.metadata.update({"language": ("eng", "ger")[index], "title": f"track {index}"})
        other.disposition = Disposition.default if index else Disposition.comment
    output.metadata["title"] = "A film"
    output.add_attachment("font.ttf", "font/ttf", b"not really a font")
    output.set_chapters(
        [
            {"id": i, "start": 200 * i, "end": 200 * i + 200, "time_base": Fraction(1, 1000),
             "metadata": {"title": f"chapter {i}"}}
            for i in range(2)
        ]
    )  # fmt: skip


def packets(path, kind):
    with av.open(str(path)) as container:
        streams = [s for s in container.streams if s.type == kind]
        return [
            (p.stream.index, p.pts * p.time_base, bytes(p))
            for p in container.demux(streams)
            if p.size
        ]


def test_everything_else_is_copied(make_clip, tmp_path):
    source = make_clip(
        "in.mkv", audio=2, setup=rich, codec="libx265", pix_fmt="yuv420p10le", size=(96, 64),
        options={"x265-params": "log-level=none", "preset": "ultrafast"},
    )  # fmt: skip
    target = tmp_path / "out.mkv"
    copy(source, target, options={"preset": "ultrafast"})
    with av.open(str(source)) as a, av.open(str(target)) as b:
        assert [s.type for s in a.streams] == [s.type for s in b.streams]
        assert [s.disposition for s in a.streams] == [s.disposition for s in b.streams]
        assert [s.language for s in a.streams] == [s.language for s in b.streams]
        assert b.streams.audio[1].metadata["title"] == "track 1"
        assert b.metadata["title"] == "A film"
        assert b.streams.attachments[0].data == b"not really a font"
        assert [c["metadata"]["title"] for c in b.chapters()] == ["chapter 0", "chapter 1"]
        assert [(c["start"], c["end"]) for c in a.chapters()] == [
            (c["start"], c["end"]) for c in b.chapters()
        ]
    assert packets(source, "audio") == packets(target, "audio")
    with VideoReader(source) as a, VideoReader(target) as b:
        assert b.info.codec == "hevc"
        assert a.info.color == b.info.color
        assert b.info.color.transfer == "pq"
        assert (a.info.rotation, b.info.rotation) == (90, 90)
        assert b.info.sample_aspect_ratio == Fraction(4, 3)
        assert a.info.format == b.info.format


@pytest.mark.parametrize("order", ["tff", "bff"])
def test_field_order_is_kept(make_clip, tmp_path, order):
    # x264 marks fields only for interlaced pictures, which the writer itself knows how to make.
    plain = make_clip("in.mkv", frames=4)
    with VideoReader(plain) as reader:
        object.__setattr__(reader.info, "field_order", order)
        with VideoWriter(tmp_path / "a.mkv", reader) as writer:
            for frame in reader:
                writer.write(frame)
    copy(tmp_path / "a.mkv", tmp_path / "b.mp4")
    for name in ("a.mkv", "b.mp4"):
        with VideoReader(tmp_path / name) as reader:
            assert reader.info.field_order == order
            assert all(frame.interlaced for frame in reader)


def test_hdr10_metadata_survives_x265(make_clip, tmp_path):
    params = (
        "log-level=none:hdr10=1:max-cll=1000,400:master-display="
        "G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50)"
    )
    source = make_clip(
        "in.mkv", frames=3, codec="libx265", pix_fmt="yuv420p10le", size=(96, 64),
        options={"x265-params": params, "preset": "ultrafast"},
    )  # fmt: skip
    copy(source, tmp_path / "out.mp4", options={"preset": "ultrafast"})
    with VideoReader(source) as a, VideoReader(tmp_path / "out.mp4") as b:
        assert a.info.mastering is not None
        assert a.info.mastering.light_level == (1000, 400)
        assert a.info.mastering == b.info.mastering


def test_untagged_colour_stays_untagged(clip, tmp_path):
    copy(clip, tmp_path / "out.mkv")
    with VideoReader(tmp_path / "out.mkv") as reader:
        tags = reader.info.color.tags
        assert (tags.matrix, tags.primaries, tags.transfer) == (2, 2, 2)


def test_start_and_duration_cut_every_stream_alike(make_clip, tmp_path):
    source = make_clip("in.mkv", frames=50, audio=1, options={"g": "12"})
    target = tmp_path / "out.mkv"
    times = []
    with (
        VideoReader(source, start=0.82, duration=0.4) as reader,
        VideoWriter(target, reader) as writer,
    ):
        for frame in reader:
            times.append(frame.time)
            writer.write(frame)
    # Frames lie at 0, 40, 80 ... ms; the first at or after 820 ms is the one at 840 ms.
    assert times == [Fraction(20 + 40 * i, 1000) for i in range(10)]
    whole = frames_of(source)
    with VideoReader(source, start=0.82, duration=0.4) as reader:
        for i, frame in enumerate(reader):
            np.testing.assert_array_equal(frame.planes[0], whole[21 + i][1][0])
    sound = [time for _, time, _ in packets(target, "audio")]
    assert 0 <= min(sound) < 0.25
    assert max(sound) < 0.4


def test_strictly_increasing_timestamps(clip, tmp_path):
    with VideoReader(clip) as reader, VideoWriter(tmp_path / "o.mkv", reader) as writer:
        frame = next(iter(reader))
        writer.write(frame)
        writer.write(frame)
    assert any("moved by one tick" in note for note in writer.notes)
    assert [f[0] for f in frames_of(tmp_path / "o.mkv")] == [0, Fraction(1, 1000)]


def test_the_input_is_never_the_output(clip, tmp_path):
    for make in (os.symlink, os.link):
        alias = tmp_path / f"{make.__name__}.mkv"
        make(clip, alias)
        with VideoReader(clip) as reader, pytest.raises(OutputError, match="input itself"):
            VideoWriter(alias, reader, overwrite=True)


def test_existing_files_need_overwrite(clip, tmp_path):
    target = tmp_path / "out.mkv"
    target.write_text("precious")
    with VideoReader(clip) as reader, pytest.raises(OutputError, match="--overwrite"):
        VideoWriter(target, reader)
    assert target.read_text() == "precious"
    copy(clip, target, overwrite=True)
    assert len(frames_of(target)) == 12


def test_an_error_leaves_nothing_behind(clip, tmp_path):
    target = tmp_path / "out.mkv"

    def fail():
        with VideoReader(clip) as reader, VideoWriter(target, reader) as writer:
            for frame in reader:
                writer.write(frame)
                assert not target.exists()
                assert [p.suffix for p in tmp_path.iterdir()] == [".mkv"]
                if writer.frames == 3:
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"options": {"no-such-option": "1"}}, UsageError),
        ({"options": {"preset": "sluggish"}}, UsageError),
        ({"codec": "libx999"}, UsageError),
        ({"pix_fmt": "yuv999p"}, UsageError),
        ({"codec": "libx264", "pix_fmt": "yuv420p12le"}, UsageError),
    ],
)
def test_wrong_encoder_options_fail_before_the_first_frame(clip, tmp_path, options, error):
    with VideoReader(clip) as reader, pytest.raises(error) as caught:
        VideoWriter(tmp_path / "out.mkv", reader, **options)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_container_that_cannot_hold_the_picture_names_mkv(make_clip, tmp_path):
    source = make_clip("in.mkv", frames=2, codec="ffv1", pix_fmt="gbrap10le")
    with VideoReader(source) as reader, pytest.raises(OutputError, match=r"\.mkv"):
        VideoWriter(tmp_path / "out.mp4", reader)
    with VideoReader(source) as reader, pytest.raises(OutputError, match=r"\.mkv"):
        VideoWriter(tmp_path / "out.xyz", reader)
    assert list(tmp_path.iterdir()) == []


def test_streams_that_do_not_fit_are_named(make_clip, tmp_path):
    source = make_clip("in.mkv", setup=rich, audio=1)
    notes = copy(source, tmp_path / "out.mp4")
    assert any("attachment stream 2 (font.ttf)" in note for note in notes)
    assert len(frames_of(tmp_path / "out.mp4")) == 12


@pytest.mark.parametrize("name", ["a b'c\".mkv", "日本語 🎬.mkv", "-leading.mkv", "file:x%d.mkv"])
def test_difficult_names(clip, tmp_path, name):
    source = tmp_path / ("in " + name if not name.startswith("-") else name)
    source.write_bytes(clip.read_bytes())
    target = tmp_path / "out" / name
    target.parent.mkdir()
    copy(source, target)
    assert len(frames_of(target)) == 12


def test_damaged_packets_are_skipped_and_counted(clip, tmp_path):
    data = bytearray(clip.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 40] = os.urandom(40)
    broken = tmp_path / "broken.mkv"
    broken.write_bytes(bytes(data[: -len(data) // 8]))
    with VideoReader(broken) as reader:
        count = len(list(reader))
    assert 0 < count <= 12


@pytest.mark.parametrize(
    ("content", "words"), [(b"", "empty"), (b"hello, world" * 9, "not a readable media file")]
)
def test_unreadable_files_give_one_line(tmp_path, content, words):
    path = tmp_path / "film.mp4"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        VideoReader(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="no such file"):
        VideoReader(tmp_path / "missing.mp4")


def test_playlists_are_not_followed(clip, tmp_path):
    (tmp_path / "clip.mkv").write_bytes(clip.read_bytes())
    playlist = tmp_path / "list.m3u8"
    playlist.write_text("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nclip.mkv\n#EXT-X-ENDLIST\n")
    concat = tmp_path / "list.ffconcat"
    concat.write_text("ffconcat version 1.0\nfile clip.mkv\n")
    for path in (playlist, concat):
        with pytest.raises(InputError):
            VideoReader(path)
