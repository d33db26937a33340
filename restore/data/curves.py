"""What a network is told about the noise: the true curve, with the error a measurement has."""

from __future__ import annotations

import cv2
import numpy as np

from restore.analyse import NoiseCurve
from restore.data.noise import FloatArray

_BINS = 16
_FEWEST = 64


def oracle_curve(clean: FloatArray, noisy: FloatArray) -> NoiseCurve:
    """Fit variance against intensity from the clean clip itself.

    Squared errors are averaged in 16 bins of local intensity; a line is fitted through the means,
    weighted by their counts, and kept from falling below zero at black or white. A clip of one
    tone gets a flat curve.

    Args:
        clean: (N, h, w, 3) RGB in [0, 1].
        noisy: The same clip, degraded.

    Returns:
        The curve whose mean variance over the clip equals the mean squared error.
    """
    lines = []
    local = np.stack([cv2.blur(frame, (5, 5)) for frame in clean])
    for channel in range(3):
        x = np.clip(local[..., channel].ravel(), 0, 1)
        error = (noisy[..., channel] - clean[..., channel]).ravel()
        lines.append(_line(x, error * error))
    slope, intercept = zip(*lines, strict=True)
    return NoiseCurve(slope, intercept)


def _line(x: FloatArray, squared: FloatArray) -> tuple[float, float]:
    mean = float(squared.mean(dtype=np.float64))
    index = np.minimum((x * _BINS).astype(np.int64), _BINS - 1)
    count = np.bincount(index, minlength=_BINS)
    used = count >= _FEWEST
    if used.sum() < 2 or mean == 0:
        return 0.0, mean
    n = count[used].astype(np.float64)
    tone = np.bincount(index, x, _BINS)[used] / n
    level = np.bincount(index, squared, _BINS)[used] / n
    share = n / n.sum()
    middle, height = float(share @ tone), float(share @ level)
    spread = float(share @ (tone - middle) ** 2)
    slope = float(share @ ((tone - middle) * (level - height))) / spread if spread > 1e-6 else 0.0
    # The line turns about its centre of mass: neither end may sink below zero.
    slope = min(max(slope, -height / max(1 - middle, 1e-3)), height / max(middle, 1e-3))
    return slope, max(height - slope * middle, 0.0)


def with_error(
    curve: NoiseCurve, rng: np.random.Generator, *, usual: float = 0.05, rare: float = 0.15
) -> NoiseCurve:
    """Scale a curve as an estimator's error would: log-normal, one time in ten three times as wide.

    Args:
        curve: The true curve.
        rng: Source of randomness.
        usual: Standard deviation of ln σ, nine times of ten.
        rare: The same for the tenth.
    """
    width = rare if rng.random() < 0.1 else usual
    return curve.scaled(float(np.exp(width * rng.standard_normal())))


def plausible(measured: NoiseCurve, truth: NoiseCurve, rng: np.random.Generator) -> NoiseCurve:
    """Bring a curve measured on a patch as near to the truth as one measured on whole frames is.

    A patch may hold no quiet block at all, and texture is then taken for noise; at run time one
    frame has a hundred times as many blocks. So σ is limited to 1.4 times the truth and a random
    part of one level, and to a tenth of it downwards (compression hides its own losses).

    Args:
        measured: What the estimator says about the patch.
        truth: The curve of the errors themselves.
        rng: Source of randomness.
    """
    found, true = measured.mean_sigma, truth.mean_sigma
    if found == 0:
        return measured
    limit = 1.4 * true + rng.uniform(0, 1 / 255)
    return measured.scaled(min(max(found, 0.1 * true), limit) / found)
