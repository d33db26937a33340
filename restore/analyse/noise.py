"""The noise of a camera as a curve over intensity, and the σ map made from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
Triple = tuple[float, float, float]

# The intensity of a pixel is the mean over 3 × 3 pixels of the quarter-size image, 12 × 12 of the
# full one: 144 samples keep a noise of 60/255 from moving its own σ by more than a few percent.
_BOX = 3
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class NoiseCurve:
    """Describe noise whose variance is linear in intensity, per RGB channel.

    σ²(x) = slope · x + intercept, for intensity x in [0, 1] and σ in [0, 1] units. Shot noise
    gives the slope, read noise the intercept; white Gaussian noise has slope zero.

    Args:
        slope: Three numbers, one per channel (R, G, B).
        intercept: Three numbers, the variance at black.

    Raises:
        ValueError: If there are not three finite numbers each, or the variance would be negative
            somewhere between black and white.

    References:
        Foi et al., "Practical Poissonian-Gaussian noise modeling and fitting for single-image
        raw-data", IEEE TIP 2008, eq. 2.
    """

    slope: Triple
    intercept: Triple

    def __post_init__(self) -> None:
        slope, intercept = _triple(self.slope, "slope"), _triple(self.intercept, "intercept")
        for at_black, rise in zip(intercept, slope, strict=True):
            if min(at_black, at_black + rise) < -_TOLERANCE:
                raise ValueError(
                    f"variance must not be negative in [0, 1]: slope {rise}, intercept {at_black}"
                )
        object.__setattr__(self, "slope", slope)
        object.__setattr__(self, "intercept", intercept)

    @classmethod
    def white(cls, sigma: float) -> NoiseCurve:
        """Return the curve of white noise: the same σ (in [0, 1] units) everywhere."""
        if not math.isfinite(sigma) or sigma < 0:
            raise ValueError(f"sigma must be a finite number from 0 up, not {sigma}")
        return cls((0.0, 0.0, 0.0), (sigma**2,) * 3)

    @property
    def is_flat(self) -> bool:
        """True when σ does not depend on intensity."""
        return self.slope == (0.0, 0.0, 0.0)

    @property
    def mean_sigma(self) -> float:
        """Root mean square of σ over all intensities and channels: one number to print."""
        return math.sqrt(max(sum(self.slope) / 6 + sum(self.intercept) / 3, 0.0))

    def sigma(self, intensity: npt.ArrayLike) -> FloatArray:
        """Return σ at given intensities.

        Args:
            intensity: Array of shape (..., 3), RGB; values outside [0, 1] count as the nearer end.

        Returns:
            Array of the same shape, float32, σ in [0, 1] units.
        """
        x = np.clip(np.asarray(intensity, np.float32), 0, 1)
        variance = x * np.asarray(self.slope, np.float32) + np.asarray(self.intercept, np.float32)
        sigma: FloatArray = np.sqrt(np.maximum(variance, 0))
        return sigma

    def scaled(self, factor: float) -> NoiseCurve:
        """Return the curve with σ multiplied by a factor from 0 up."""
        if not math.isfinite(factor) or factor < 0:
            raise ValueError(f"factor must be a finite number from 0 up, not {factor}")
        power = factor**2
        return NoiseCurve(
            _triple([power * v for v in self.slope], "slope"),
            _triple([power * v for v in self.intercept], "intercept"),
        )

    def plus(self, sigma: float) -> NoiseCurve:
        """Return the curve of this noise and an independent white one of σ, in [0, 1] units."""
        if not math.isfinite(sigma) or sigma < 0:
            raise ValueError(f"sigma must be a finite number from 0 up, not {sigma}")
        return NoiseCurve(self.slope, _triple([v + sigma**2 for v in self.intercept], "intercept"))

    def blend(self, newer: NoiseCurve, weight: float) -> NoiseCurve:
        """Return a running estimate: the variance of this curve moved towards a newer one.

        Args:
            newer: The curve measured last.
            weight: Its share, from 0 (nothing moves) to 1 (the newer curve replaces this one).

        Raises:
            ValueError: If the weight lies outside [0, 1].
        """
        if not 0 <= weight <= 1:
            raise ValueError(f"weight must lie in [0, 1], not {weight}")
        return NoiseCurve(
            _mix(self.slope, newer.slope, weight), _mix(self.intercept, newer.intercept, weight)
        )


def noise_map(curve: NoiseCurve, image: FloatArray) -> FloatArray:
    """Build the σ map of an image.

    Intensity is a local mean of the image, so that the noise in the image does not feed into its
    own σ. Training and inference use this same function.

    Args:
        curve: The noise of the shot.
        image: Noisy image of shape (H, W, 3), RGB, nominally in [0, 1], not necessarily clipped.

    Returns:
        A new array of shape (H, W, 3), float32, σ in [0, 1] units.

    Raises:
        ValueError: If the image is not of shape (H, W, 3).
    """
    if image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(f"image must have shape (H, W, 3), not {image.shape}")
    height, width = image.shape[:2]
    if curve.is_flat:
        row = np.tile(curve.sigma(np.zeros(3)), width)
        return np.tile(row, (height, 1)).reshape(height, width, 3)
    # Halving with linear interpolation is the mean of 2 × 2 pixels, quicker than INTER_AREA.
    mean = _halved(_halved(np.ascontiguousarray(image, np.float32)))
    mean = np.asarray(cv2.blur(mean, (_BOX, _BOX), borderType=cv2.BORDER_REFLECT), np.float32)
    sigma = cv2.resize(curve.sigma(mean), (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(sigma, np.float32)


def _halved(image: FloatArray) -> FloatArray:
    size = ((image.shape[1] + 1) // 2, (image.shape[0] + 1) // 2)
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_LINEAR), np.float32)


def _triple(values: Sequence[float], name: str) -> Triple:
    numbers = tuple(float(v) for v in values)
    if len(numbers) != 3 or not all(map(math.isfinite, numbers)):
        raise ValueError(f"{name} must be three finite numbers, not {values}")
    return numbers


def _mix(old: Triple, new: Triple, weight: float) -> Triple:
    return _triple([(1 - weight) * a + weight * b for a, b in zip(old, new, strict=True)], "curve")
