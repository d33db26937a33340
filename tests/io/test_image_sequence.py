from fractions import Fraction

import cv2
import numpy as np
import pytest
from skimage.data import astronaut

from restore.errors import InputError, OutputError
from restore.io import VideoReader, VideoWriter, to_rgb
from restore.io.sequence import natural_key


def write(folder, count, suffix=".png", dtype=np.uint8, channels=3):
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    pictures = []
    for i in range(count):
        shape = (14, 19, channels) if channels > 1 else (14, 19)
        picture = rng.integers(0, np.iinfo(dtype).max + 1, shape).astype(dtype)
        cv2.imwrite(str(folder / f"p{i + 8}{suffix}"), picture)
        pictures.append(picture)
    return pictures


def copy(source, target, **options):
    with VideoReader(source) as reader, VideoWriter(target, reader, **options) as writer:
        for frame in reader:
            writer.write(frame)
    return reader, writer


def read_all(path):
    with VideoReader(path) as reader:
        return [np.stack([*frame.planes, frame.alpha]) for frame in reader]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("suffix", [".png", ".tiff"])
def test_folder_to_pattern_is_lossless(tmp_path, suffix, channels, dtype):
    pictures = write(tmp_path / "in", 3, suffix, dtype, channels)
    target = tmp_path / "out" / f"%04d{suffix}"
    reader, writer = copy(tmp_path / "in", target)
    assert (reader.info.frame_count, writer.frames) == (3, 3)
    names = sorted(p.name for p in target.parent.iterdir())
    assert names == [f"000{i}{suffix}" for i in (1, 2, 3)]
    if (suffix, channels) == (".tiff", 4):  # OpenCV multiplies the colours of TIFF by alpha
        pictures = read_all(tmp_path / "in")
        assert all((a == b).all() for a, b in zip(pictures, read_all(target), strict=True))
        return
    for name, picture in zip(names, pictures, strict=True):
        back = cv2.imread(str(target.parent / name), cv2.IMREAD_UNCHANGED)
        np.testing.assert_array_equal(back, picture)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "out"]


@pytest.mark.parametrize("suffix", [".bmp", ".webp", ".dpx", ".jp2", ".tga"])
def test_lossless_picture_formats(tmp_path, suffix):
    pictures = write(tmp_path / "in", 2)
    copy(tmp_path / "in", tmp_path / f"out%d{suffix}")
    with VideoReader(tmp_path / f"out%d{suffix}") as reader:
        for frame, picture in zip(reader, pictures, strict=True):
            np.testing.assert_array_equal(np.stack(frame.planes[::-1], axis=-1), picture)


def test_exr_and_jpeg(tmp_path):
    write(tmp_path / "in", 1, dtype=np.uint16)
    copy(tmp_path / "in" / "p8.png", tmp_path / "one.exr")
    with VideoReader(tmp_path / "in" / "p8.png") as a, VideoReader(tmp_path / "one.exr") as b:
        for first, second in zip(next(iter(a)).planes, next(iter(b)).planes, strict=True):
            assert np.abs(first.astype(int) - second).max() <= 1
    flat = np.full((16, 16, 3), (30, 60, 200), np.uint8)  # B, G, R
    cv2.imwrite(str(tmp_path / "flat.png"), flat)
    copy(tmp_path / "flat.png", tmp_path / "flat.jpg")
    back = cv2.imread(str(tmp_path / "flat.jpg")).astype(int)
    assert np.abs(back - flat).max() <= 3


def test_photographs(tmp_path):
    # More than FFmpeg looks at when it guesses the format of a JPEG; and one with a wrong ending.
    cv2.imwrite(str(tmp_path / "1.jpg"), astronaut()[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 98])
    cv2.imwrite(str(tmp_path / "2.png"), astronaut()[..., ::-1])
    (tmp_path / "2.png").rename(tmp_path / "2.jpg")
    with VideoReader(tmp_path) as reader:
        pictures = [to_rgb(frame) for frame in reader]
    assert len(pictures) == 2
    for picture in pictures:
        assert np.abs(picture * 255 - astronaut()).mean() < 2


def test_files_come_in_counting_order_and_pattern_may_have_gaps(tmp_path):
    write(tmp_path / "in", 4)  # p8, p9, p10, p11
    (tmp_path / "in" / "p9.png").unlink()
    with VideoReader(tmp_path / "in" / "p%d.png", rate=Fraction(24)) as reader:
        assert [f.time for f in reader] == [Fraction(i, 24) for i in range(3)]
    files = sorted((tmp_path / "in").iterdir(), key=natural_key)
    assert [f.name for f in files] == ["p8.png", "p10.png", "p11.png"]


def test_single_picture(tmp_path):
    pictures = write(tmp_path / "in", 1)
    copy(tmp_path / "in" / "p8.png", tmp_path / "out.png")
    np.testing.assert_array_equal(cv2.imread(str(tmp_path / "out.png")), pictures[0])


def test_video_to_pictures_and_back(clip, tmp_path):
    copy(clip, tmp_path / "f" / "%03d.png")
    assert len(list((tmp_path / "f").iterdir())) == 12
    reader, writer = copy(tmp_path / "f", tmp_path / "back.mkv")
    assert reader.info.format.family == "rgb"
    assert writer.frames == 12
    assert copy(tmp_path / "f", tmp_path / "back.mp4")[1].frames == 12


def test_existing_pictures_need_overwrite_and_errors_clean_up(clip, tmp_path):
    target = tmp_path / "%03d.png"
    copy(clip, target)
    with VideoReader(clip) as reader, pytest.raises(OutputError, match="--overwrite"):
        VideoWriter(target, reader)
    copy(clip, target, overwrite=True)
    with pytest.raises(OutputError, match="one picture only"):
        copy(clip, tmp_path / "single.png")
    assert len(list(tmp_path.iterdir())) == 12


def test_missing_pictures_give_one_line(tmp_path):
    for path in (tmp_path, tmp_path / "no%05d.png", tmp_path / "no.png"):
        with pytest.raises(InputError):
            VideoReader(path)


def test_an_animated_webp_is_refused_by_its_name(make_clip, tmp_path):
    """FFmpeg decodes none of its frames; the user is told what to do."""
    animated = make_clip("in.webp", codec="libwebp_anim", pix_fmt="yuv420p", frames=3)
    with pytest.raises(InputError, match=r"WebP animations are not read; convert it to \.apng"):
        VideoReader(animated)
    still = tmp_path / "still.webp"
    cv2.imwrite(str(still), np.zeros((16, 16, 3), np.uint8))
    with VideoReader(still) as reader:
        assert len(list(reader)) == 1
