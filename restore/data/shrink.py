"""Make a clip smaller, in the ways that benchmarks and cameras do: pairs for super-resolution.

Pixel centres as everywhere: pixel i of the small picture lies at (i + 1/2) * scale - 1/2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from PIL import Image

from restore.analyse import NoiseCurve
from restore.data.datasets import ClipDataset
from restore.data.degrade import Drawn, Sample, degrade, log_uniform
from restore.data.noise import FloatArray, quantize
from restore.data.sources import Window

BLUR = 0.4
"""σ of the blur before decimation for each unit of the scale: 1.6 pixels at scale 4."""


def shrink_bicubic(clip: FloatArray, scale: int) -> FloatArray:
    """Shrink (N, h, w, 3) by Pillow's anti-aliased bicubic filter, as stored in 8 bits ("BI")."""
    frames = np.rint(clip.clip(0, 1) * 255).astype(np.uint8)
    size = (clip.shape[2] // scale, clip.shape[1] // scale)
    small = [np.asarray(Image.fromarray(f).resize(size, Image.Resampling.BICUBIC)) for f in frames]
    return np.stack(small).astype(np.float32) * np.float32(1 / 255)


def shrink_gaussian(clip: FloatArray, scale: int, sigma: float | None = None) -> FloatArray:
    """Blur by a Gaussian and take every scale-th pixel ("BD").

    Where a pixel centre of the small picture lies between pixels (even scales), the four around it
    are averaged, and the blur is less by as much.

    Args:
        clip: Shape (N, h, w, 3).
        scale: Reduction.
        sigma: Blur in pixels of the large picture; None is the benchmark's, 1.6 at scale 4.
    """
    wanted = BLUR * scale if sigma is None else sigma
    even = scale % 2 == 0
    rest = max(wanted**2 - 0.25 * even, 1e-4) ** 0.5
    first = (scale - 1) // 2
    blurred = np.stack([cv2.GaussianBlur(frame, (0, 0), rest) for frame in clip])
    small = blurred[:, first::scale, first::scale]
    if even:
        rows, columns = slice(first + 1, None, scale), slice(first + 1, None, scale)
        small = small + blurred[:, rows, first::scale] + blurred[:, first::scale, columns]
        small = (small + blurred[:, rows, columns]) * np.float32(0.25)
    return quantize(np.ascontiguousarray(small, np.float32))


def shrink_area(clip: FloatArray, scale: int) -> FloatArray:
    """Average squares of pixels, as a sensor and most scalers do."""
    size = (clip.shape[2] // scale, clip.shape[1] // scale)
    small = [cv2.resize(frame, size, interpolation=cv2.INTER_AREA) for frame in clip]
    return quantize(np.stack(small))


def _bicubic(clip: FloatArray, scale: int, rng: np.random.Generator) -> FloatArray:
    return shrink_bicubic(clip, scale)


def _gaussian(clip: FloatArray, scale: int, rng: np.random.Generator) -> FloatArray:
    return shrink_gaussian(clip, scale)


def _area(clip: FloatArray, scale: int, rng: np.random.Generator) -> FloatArray:
    return shrink_area(clip, scale)


def _blurred(clip: FloatArray, scale: int, rng: np.random.Generator) -> FloatArray:
    """Shrink after the blur of a lens or of an earlier enlargement, from slight to strong."""
    return shrink_gaussian(clip, scale, float(rng.uniform(0.25, 0.75)) * scale)


SHRINKS: dict[str, Callable[[FloatArray, int, np.random.Generator], FloatArray]] = {
    "bi": _bicubic,
    "bd": _gaussian,
    "area": _area,
    "blur": _blurred,
}
"""Ways to shrink, by the name that a training configuration uses."""


@dataclass(frozen=True)
class CleanRecipe:
    """Leave the small clip as it is, in 8 bits."""

    estimated_share: float = 0.5

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Return no step at all."""
        return Drawn((), True, None)


class SmallDataset(ClipDataset):
    """Clips that are shrunk and then degraded: `noisy` is smaller than `clean` by the scale.

    Args:
        *args: Those of `ClipDataset`, whose patch is the size of the clean picture.
        scale: Reduction; the patch must be a multiple of it.
        shrinks: Keys of `SHRINKS`, each as likely as the others; a name may stand twice.
        **options: Further arguments of `ClipDataset`.
    """

    def __init__(self, *args: Any, scale: int, shrinks: Sequence[str], **options: Any) -> None:
        super().__init__(*args, **options)
        if any(side % scale for side in self.patch):
            raise ValueError(f"a patch of {self.patch} is no multiple of the scale {scale}")
        self.scale, self.shrinks = scale, tuple(shrinks)

    def describe(self) -> dict[str, Any]:
        """Return what to store with the weights."""
        return super().describe() | {"scale": self.scale, "shrinks": list(self.shrinks)}

    def _finish(self, frames: Any, window: Window, rng: np.random.Generator) -> Sample:
        clean = np.ascontiguousarray(frames).astype(np.float32) * np.float32(1 / 255)
        way = self.shrinks[int(rng.integers(len(self.shrinks)))]
        small = SHRINKS[way](clean, self.scale, rng)
        sample = degrade(small, self.recipe, rng, estimator=self.estimator)
        meta = {"shrink": way, "scale": self.scale, **sample.meta, **window.meta}
        return Sample(clean, sample.noisy, mistaken(sample.curve, rng), meta)


def mistaken(curve: NoiseCurve, rng: np.random.Generator, share: float = 0.4) -> NoiseCurve:
    """Add the noise that is measured in the texture of small pictures: several levels of it.

    A picture of a few thousand pixels may hold no quiet place at all (7 to 10 levels were measured
    on clean clips of 120 x 80), and a model that believed it would smooth the texture.

    Args:
        curve: What would be told otherwise.
        rng: Source of randomness.
        share: Share of curves that are changed.
    """
    if rng.random() >= share:
        return curve
    extra = log_uniform(rng, 1 / 255, 12 / 255) ** 2
    red, green, blue = curve.intercept
    return NoiseCurve(curve.slope, (red + extra, green + extra, blue + extra))
