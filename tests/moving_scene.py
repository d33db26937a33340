"""A scene with detail, a still background and a moving foreground, and a lossless clip of it."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import av
import cv2
import numpy as np
from skimage import data


@lru_cache(maxsize=4)
def scene(frames: int = 8, height: int = 192, width: int = 256, step: int = 6) -> np.ndarray:
    """Return (T, H, W, 3) uint8: a portrait at rest, a picture of coffee passing before it."""
    back = cv2.resize(data.astronaut(), (width, height), interpolation=cv2.INTER_AREA)
    front = cv2.resize(data.coffee(), (width // 3, height // 3), interpolation=cv2.INTER_AREA)
    clip = np.repeat(back[None], frames, axis=0)
    for number, frame in enumerate(clip):
        left = 8 + step * number
        frame[height // 4 : height // 4 + front.shape[0], left : left + front.shape[1]] = front
    clip.flags.writeable = False
    return clip


def as_float(clip: np.ndarray) -> list[np.ndarray]:
    return [frame.astype(np.float32) / 255 for frame in clip]


def with_noise(clip: np.ndarray, sigma: float, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0, sigma, clip.shape)
    return np.clip(np.rint(clip + noise), 0, 255).astype(np.uint8)


def write_clip(
    path: Path,
    clip: np.ndarray,
    *,
    pts: Sequence[int] | None = None,
    time_base: Fraction = Fraction(1, 1000),
) -> Path:
    """Write a lossless RGB clip; 40 ms a frame unless `pts` says otherwise."""
    stamps = pts or [40 * number for number in range(len(clip))]
    with av.open(str(path), "w") as output:
        stream = output.add_stream("ffv1", rate=25)
        stream.height, stream.width = clip.shape[1:3]
        stream.pix_fmt = "bgr0"
        stream.time_base = stream.codec_context.time_base = time_base
        for frame, stamp in zip(clip, stamps, strict=True):
            picture = av.VideoFrame.from_ndarray(frame, format="rgb24").reformat(format="bgr0")
            picture.pts, picture.time_base = stamp, time_base
            output.mux(stream.encode(picture))
        output.mux(stream.encode(None))
    return path
