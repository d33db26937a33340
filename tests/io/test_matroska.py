"""The shape of the pixels in Matroska and WebM, whatever the codec."""

import shutil
import subprocess
import zlib
from fractions import Fraction

import av
import pytest

from restore.io import VideoReader, VideoWriter
from restore.io.matroska import set_pixel_aspect


@pytest.fixture
def wide_clip(make_clip):
    """Return a function that makes a clip with pixels of a given shape."""

    def make(aspect):
        def setup(output, stream):
            stream.codec_context.sample_aspect_ratio = aspect

        return make_clip("in.mov", setup=setup, frames=3)

    return make


def copy(source, target, **options):
    """Send a file through reader and writer; return the notes."""
    with VideoReader(source) as reader, VideoWriter(target, reader, **options) as writer:
        for frame in reader:
            writer.write(frame)
    return writer.notes


def aspect_of(path):
    with VideoReader(path) as reader:
        return reader.info.sample_aspect_ratio


@pytest.mark.parametrize("aspect", [Fraction(4, 3), Fraction(16, 15), Fraction(3, 4)])
@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("out.mkv", "ffv1"),
        ("out.mkv", "libvpx-vp9"),
        ("out.mkv", "libx264"),
        ("out.mkv", "mjpeg"),
        ("out.webm", "libvpx-vp9"),
    ],
)
def test_every_codec_keeps_the_shape_of_the_pixels(wide_clip, tmp_path, name, codec, aspect):
    source, target = wide_clip(aspect), tmp_path / name
    notes = copy(source, target, codec=codec)
    assert not any("pixels" in note for note in notes)
    tolerance = 0.5 / 64 if name.endswith("webm") else 0  # in whole pixels
    assert abs(aspect_of(target) - aspect) <= tolerance


@pytest.mark.skipif(shutil.which("ffprobe") is None, reason="ffprobe is not installed")
def test_another_reader_agrees(wide_clip, tmp_path):
    source, target = wide_clip(Fraction(16, 11)), tmp_path / "out.mkv"
    copy(source, target, codec="ffv1")
    asked = ["-show_entries", "stream=sample_aspect_ratio", "-of", "csv=p=0"]
    told = subprocess.run(
        ["ffprobe", "-v", "warning", *asked, str(target)], capture_output=True, text=True
    )
    assert told.stdout.strip() == "16:11"
    assert told.stderr == ""


def test_nothing_else_in_the_file_changes(make_clip, tmp_path):
    path = make_clip("in.mkv", codec="ffv1", audio=1)
    before = path.read_bytes()
    changed = tmp_path / "changed.mkv"
    changed.write_bytes(before)
    assert set_pixel_aspect(changed, 0, Fraction(17, 13), (64, 48))
    after = changed.read_bytes()
    assert len(after) == len(before)
    tracks = before.rindex(bytes.fromhex("1654ae6b"))
    differing = [i for i, (x, y) in enumerate(zip(before, after, strict=True)) if x != y]
    assert min(differing) > tracks
    assert max(differing) < before.index(bytes.fromhex("1254c367"), tracks)  # the tags
    size = int.from_bytes(after[tracks + 4 : tracks + 6], "big") & 0x3FFF
    content = after[tracks + 6 : tracks + 6 + size]
    assert content[:2] == b"\xbf\x84"
    assert int.from_bytes(content[2:6], "little") == zlib.crc32(content[6:])
    with av.open(str(changed)) as container:
        assert [s.type for s in container.streams] == ["video", "audio"]
        assert container.streams.video[0].sample_aspect_ratio == Fraction(17, 13)
        assert len([p for p in container.demux() if p.size]) > 12


def test_a_file_without_that_track_stays_as_it_is(clip, tmp_path):
    for data in (clip.read_bytes(), b"", b"\x1a\x45\xdf\xa3", bytes(100), b"no matroska" * 9):
        path = tmp_path / "in.mkv"
        path.write_bytes(data)
        assert not set_pixel_aspect(path, 1, Fraction(2), (64, 48))
        assert path.read_bytes() == data
