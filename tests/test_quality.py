"""What the published weights reach where it is easy to get wrong: chroma, cuts, new places."""

from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from moving_scene import as_float, scene, with_noise
from skimage import data

from restore import restore_video
from restore.engine import load_engine
from restore.io import PixelFormat, VideoReader
from restore.io.chroma import downsample, upsample
from restore.sequence import Preset, restore_shots

SIGMA = 25 / 255
SUBSAMPLED = PixelFormat("yuv420p", "yuv", 8, 1, 1, False)


def psnr(a: np.ndarray, b: np.ndarray) -> float:
    return float(-10 * np.log10(np.mean((a.astype(np.float64) - b) ** 2)))


def restored(noisy: list[np.ndarray], slots: int) -> list[np.ndarray]:
    preset = Preset("denoise", slots=slots)
    engine = load_engine("denoise")
    found = restore_shots(noisy, lambda image: image, engine, preset, SIGMA)
    return [np.clip(clean, 0, 1) for _, clean, _ in found]


def both(clean: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Return the clean frames, restored from several frames, restored from one."""
    noisy = as_float(with_noise(clean, SIGMA * 255))
    return as_float(clean), restored(noisy, 5), restored(noisy, 1)


def planes_of(clip: np.ndarray, pix_fmt: str) -> list[list[np.ndarray]]:
    """Return (T, H, W, 3) uint8 RGB as planes of full-range BT.709."""
    frames = []
    for image in clip:
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
        told = dict(dst_colorspace="ITU709", dst_color_range="JPEG", src_color_range="JPEG")
        frame = frame.reformat(format=pix_fmt, **told)
        frames.append([p.copy() for p in _planes(frame)])
    return frames


def _planes(frame: av.VideoFrame) -> list[np.ndarray]:
    return [
        np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)[:, : plane.width]
        for plane in frame.planes
    ]


def write_planes(path: Path, frames: list[list[np.ndarray]], pix_fmt: str) -> Path:
    with av.open(str(path), "w") as output:
        stream = output.add_stream("ffv1", rate=25)
        stream.height, stream.width = frames[0][0].shape
        stream.pix_fmt = pix_fmt
        stream.codec_context.colorspace, stream.codec_context.color_range = 1, 2
        for number, planes in enumerate(frames):
            picture = av.VideoFrame(stream.width, stream.height, pix_fmt)
            for target, plane in zip(picture.planes, planes, strict=True):
                rows = np.zeros((target.height, target.line_size), np.uint8)
                rows[:, : target.width] = plane
                target.update(rows.tobytes())
            picture.pts, picture.time_base = number, Fraction(1, 25)
            output.mux(stream.encode(picture))
        output.mux(stream.encode(None))
    return path


def test_subsampled_chroma_is_restored_as_well_as_full_chroma(tmp_path: Path) -> None:
    clip = scene(6)
    clean = planes_of(clip, "yuv420p")
    small = planes_of(with_noise(clip, 25), "yuv420p")
    found = {}
    for pix_fmt in ("yuv420p", "yuv444p"):
        source, target = tmp_path / f"{pix_fmt}.mkv", tmp_path / f"out_{pix_fmt}.mkv"
        frames = small if pix_fmt == "yuv420p" else [_full(planes) for planes in small]
        restore_video(write_planes(source, frames, pix_fmt), target)
        with VideoReader(target) as reader:
            found[pix_fmt] = [frame.planes for frame in reader]
    for index in (1, 2):
        before = np.mean([psnr8(a[index], b[index]) for a, b in zip(small, clean, strict=True)])
        subsampled, full = (
            np.mean(
                [
                    psnr8(_small(a[index]) if name == "yuv444p" else a[index], b[index])
                    for a, b in zip(found[name], clean, strict=True)
                ]
            )
            for name in found
        )
        assert subsampled > before + 4
        assert subsampled == pytest.approx(full, abs=0.2)


def psnr8(a: np.ndarray, b: np.ndarray) -> float:
    return psnr(a / 255, b / 255)


def _full(planes: list[np.ndarray]) -> list[np.ndarray]:
    height, width = planes[0].shape
    chroma = [upsample(p.astype(np.float32), height, width, SUBSAMPLED, "left") for p in planes[1:]]
    return [planes[0], *(np.clip(np.rint(c), 0, 255).astype(np.uint8) for c in chroma)]


def _small(plane: np.ndarray) -> np.ndarray:
    return downsample(plane.astype(np.float32), SUBSAMPLED, "left")


def test_no_ghost_of_the_other_shot_at_a_cut() -> None:
    other = cv2.resize(data.chelsea(), (256, 192), interpolation=cv2.INTER_AREA)
    clean, many, one = both(np.concatenate([scene(8)[:4], np.repeat(other[None], 4, 0)]))
    for number in (3, 4):
        assert psnr(many[number], clean[number]) > psnr(one[number], clean[number])


def test_no_ghost_where_the_background_comes_into_view() -> None:
    clip = scene(8, step=17)
    clean, many, one = both(clip)
    uncovered = np.abs(clip[1:].astype(int) - clip[:-1]).max(-1) > 24
    # From the third frame on there is a past to make ghosts of.
    for number, mask in enumerate(uncovered[2:-1], 3):
        mask = cv2.dilate(mask.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0
        ours, single = (psnr(x[number][mask], clean[number][mask]) for x in (many, one))
        assert ours > single
