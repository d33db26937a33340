"""The built-in sample: a short noisy clip made from scikit-image's photographs, restored."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from restore.errors import OutputError

if TYPE_CHECKING:
    from restore.io import VideoReader

Image = NDArray[np.float32]
Progress = Callable[[int, "int | None"], None]

WIDTH, HEIGHT, FRAMES = 480, 320, 24
SLOPE = np.array([0.010, 0.008, 0.014], np.float32)
"""Photon noise of R, G, B: variance per unit of brightness; blue is the noisiest."""
READ_NOISE = 0.0008
"""Variance in the dark, (7.2/255)²."""


@dataclass(frozen=True)
class DemoResult:
    """What the demo made, and how close to the clean clip it is."""

    frames: int
    psnr_before: float
    """dB, noisy against clean, mean over the frames."""
    psnr_after: float
    """dB, restored against clean, mean over the frames."""
    picture: Path
    """The middle frame: noisy, restored, clean."""
    clean: Path
    noisy: Path
    restored: Path


def run_demo(
    folder: str | Path = "demo",
    *,
    preset: str = "balanced",
    model: str | None = None,
    sigma: float | None = None,
    progress: Progress | None = None,
) -> DemoResult:
    """Make the sample, restore it, compare; earlier files of the demo are replaced.

    Args:
        folder: Where clean.mkv, noisy.mkv, restored.mkv and before_after.png go.
        preset: As `restore.pipeline.restore_video` takes it.
        model: The same.
        sigma: The same; None measures the noise.
        progress: The same.

    Raises:
        OutputError: If the folder cannot be written.
        RestoreError: What `restore_video` raises.
    """
    from restore.pipeline import restore_video

    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{place}: {error.strerror}. Choose another folder.") from error
    clean, noisy, restored = (place / f"{name}.mkv" for name in ("clean", "noisy", "restored"))
    write_clip(sample(), clean)
    write_clip(add_noise(sample()), noisy)
    restore_video(
        noisy, restored, preset=preset, model=model, sigma=sigma, overwrite=True, progress=progress
    )
    return _compare(clean, noisy, restored, place / "before_after.png")


def sample() -> Iterator[Image]:
    """Yield the clean clip: the camera pans and zooms while an object crosses in front of it.

    Yields:
        24 frames (320, 480, 3) float32 RGB in [0, 1]; the same ones every time.
    """
    import cv2
    from skimage import data

    background = data.astronaut().astype(np.float32) / 255
    cat = data.chelsea().astype(np.float32)[30:270, 110:400] / 255
    height, width = cat.shape[:2]
    oval = np.zeros((height, width), np.float32)
    axes = (width // 2 - 12, height // 2 - 12)
    cv2.ellipse(oval, (width // 2, height // 2), axes, 0, 0, 360, (1.0,), -1)
    oval = cv2.GaussianBlur(oval, (0, 0), 2)
    size = (WIDTH, HEIGHT)
    for number in range(FRAMES):
        # 3.5 pixels a frame down, zooming in by 6 % over the clip.
        zoom = 1 + 0.06 * number / FRAMES
        camera = np.array([[zoom, 0, -16 - number * 0.6], [0, zoom, -20 - number * 3.5]])
        picture = cv2.warpAffine(background, camera, size, flags=cv2.INTER_CUBIC)
        turn = cv2.getRotationMatrix2D((width / 2, height / 2), 12 - number, 0.5)
        turn[:, 2] += (-120 + number * 15.5, 90)
        object_ = cv2.warpAffine(cat, turn, size, flags=cv2.INTER_AREA)
        cover = cv2.warpAffine(oval, turn, size)[..., None]
        picture = picture * (1 - cover) + object_ * cover
        yield np.clip(picture, 0, 1).astype(np.float32)


def add_noise(frames: Iterator[Image], seed: int = 0) -> Iterator[Image]:
    """Yield frames with a camera's noise, σ² = slope · x + read noise, clipped to [0, 1]."""
    rng = np.random.default_rng(seed)
    for frame in frames:
        sigma = np.sqrt(SLOPE * frame + np.float32(READ_NOISE))
        noise = rng.standard_normal(frame.shape, dtype=np.float32)
        yield np.clip(frame + sigma * noise, 0, 1)


def write_clip(frames: Iterator[Image], path: Path) -> None:
    """Write a lossless 8-bit 4:2:0 video, 25 frames a second."""
    from restore.io import VideoReader, VideoWriter

    with tempfile.TemporaryDirectory() as pictures:
        for number, frame in enumerate(frames):
            _write_picture(Path(pictures) / f"{number:05d}.png", frame)
        with (
            VideoReader(Path(pictures) / "%05d.png") as reader,
            VideoWriter(path, reader, codec="ffv1", pix_fmt="yuv420p", overwrite=True) as writer,
        ):
            for decoded in reader:
                writer.write(decoded)


def _write_picture(path: Path, image: Image) -> None:
    import cv2

    levels = np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)
    # Through memory: OpenCV cannot open every path on every system, and only warns when it fails.
    coded = cv2.imencode(".png", levels[..., ::-1])[1].tobytes()
    try:
        path.write_bytes(coded)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}. Choose another folder.") from error


def _compare(clean: Path, noisy: Path, restored: Path, picture: Path) -> DemoResult:
    from restore.io import VideoReader, to_rgb
    from restore.metrics import psnr

    def images(reader: VideoReader) -> Iterator[Image]:
        return (np.clip(to_rgb(frame), 0, 1).astype(np.float32) for frame in reader)

    before, after = [], []
    with VideoReader(clean) as one, VideoReader(noisy) as two, VideoReader(restored) as three:
        triples = zip(images(one), images(two), images(three), strict=True)
        for number, (reference, bad, good) in enumerate(triples):
            before.append(psnr(reference, bad))
            after.append(psnr(reference, good))
            if number == FRAMES // 2:
                panels: list[tuple[str, Any]] = [
                    (f"noisy, {before[-1]:.1f} dB", bad),
                    (f"restored, {after[-1]:.1f} dB", good),
                    ("clean", reference),
                ]
                _write_picture(picture, np.hstack([_labelled(*panel) for panel in panels]))
    means = float(np.mean(before)), float(np.mean(after))
    return DemoResult(len(before), *means, picture, clean, noisy, restored)


def _labelled(text: str, image: Image) -> Image:
    import cv2

    levels = np.rint(image * 255).astype(np.uint8)  # putText wants 8 bits
    canvas = cv2.copyMakeBorder(levels, 24, 0, 0, 0, cv2.BORDER_CONSTANT)
    white = (255, 255, 255)
    cv2.putText(canvas, text, (6, 17), cv2.FONT_HERSHEY_SIMPLEX, 0.5, white, 1, cv2.LINE_AA)
    return canvas.astype(np.float32) / 255
