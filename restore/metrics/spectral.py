"""Where along the frequencies a picture gains or loses: radial power spectra."""

import math
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from restore.metrics.fidelity import Image

_BINS = 64
HIGH_BAND = (0.25, 0.5)
"""Cycles per pixel that count as fine detail: structures of two to four pixels."""


@dataclass(frozen=True)
class Spectra:
    """Radially averaged power densities; white noise of variance v is flat at v."""

    frequency: NDArray[np.float64]
    """Bin centres, cycles per pixel, up to 0.5."""
    reference: NDArray[np.float64]
    image: NDArray[np.float64]
    difference: NDArray[np.float64]
    """Of image minus reference."""
    shared: NDArray[np.float64]
    """Real part of the cross spectrum: what the image has of the reference."""
    weight: NDArray[np.float64]
    """Number of coefficients in each bin."""

    @property
    def detail_lost(self) -> float:
        """Share of the reference's fine detail that the image lacks; noise cannot hide it.

        1 - Σ Re(R* X) / Σ |R|² over `HIGH_BAND`: 0 for a faithful picture, 1 without any detail,
        below 0 when sharpened. NaN for a reference without detail.
        """
        total = self._high(self.reference)
        return 1 - self._high(self.shared) / total if total > 0 else math.nan

    @property
    def high_gain_db(self) -> float:
        """Power in `HIGH_BAND` against the reference's in dB: below 0 smoother, above 0 noisier."""
        power, total = self._high(self.image), self._high(self.reference)
        return 10 * math.log10(power / total) if power > 0 and total > 0 else math.nan

    @property
    def whiteness(self) -> float:
        """Spectral flatness of the difference: 1 for white noise, towards 0 for structure.

        Geometric over arithmetic mean of its power along the coefficients.
        """
        power = self.difference
        if not (power > 0).all():
            return math.nan
        logs = np.average(np.log(power), weights=self.weight)
        return float(np.exp(logs) / np.average(power, weights=self.weight))

    def _high(self, power: NDArray[np.float64]) -> float:
        band = (self.frequency >= HIGH_BAND[0]) & (self.frequency < HIGH_BAND[1])
        return float((power * self.weight)[band].sum())


class RadialSpectrum:
    """Accumulates the spectra of pairs of single-channel pictures of one size.

    The centre of the picture is taken at the largest size with a fast transform, its mean removed,
    under a Hann window, so that borders do not leak into the high frequencies.
    """

    def __init__(self, height: int, width: int) -> None:
        rows, columns = _fast_size(height), _fast_size(width)
        self._crop = (
            slice((height - rows) // 2, (height - rows) // 2 + rows),
            slice((width - columns) // 2, (width - columns) // 2 + columns),
        )
        window = np.hanning(rows + 2)[1:-1, None] * np.hanning(columns + 2)[None, 1:-1]
        self._window = (window / math.sqrt((window**2).sum())).astype(np.float32)
        radius = np.hypot(np.fft.fftfreq(rows)[:, None], np.fft.rfftfreq(columns)[None])
        bins = min(_BINS, max(min(rows, columns) // 2, 1))
        self._index = np.minimum((radius * 2 * bins).astype(np.int64), bins).ravel()
        # Half the plane is stored; all but two of its columns stand for two coefficients.
        weight = np.full(radius.shape, 2.0)
        weight[:, 0] = 1
        if columns % 2 == 0:
            weight[:, -1] = 1
        self._index[0] = bins  # the constant belongs to no bin
        self._weight = weight.ravel()
        self._bins, self._pairs = bins, 0
        self._sums = np.zeros((4, bins + 1))

    def add(self, reference: Image, image: Image) -> None:
        """Add a pair of (H, W) pictures in [0, 1]."""
        r, x = self._transform(reference), self._transform(image)
        shared = r.real * x.real + r.imag * x.imag
        for row, power in enumerate((_power(r), _power(x), _power(x - r), shared)):
            self._sums[row] += np.bincount(
                self._index, weights=power.ravel() * self._weight, minlength=self._bins + 1
            )
        self._pairs += 1

    def _transform(self, image: Image) -> NDArray[Any]:
        part = image[self._crop]
        return np.fft.rfft2((part - part.mean()) * self._window)

    @property
    def spectra(self) -> Spectra | None:
        """The spectra of all pairs so far, None before the first."""
        if not self._pairs:
            return None
        count = np.bincount(self._index, weights=self._weight, minlength=self._bins + 1)[:-1]
        filled = count > 0
        densities = self._sums[:, :-1][:, filled] / (count[filled] * self._pairs)
        reference, image, difference, shared = densities
        frequency = (np.arange(self._bins) + 0.5) / (2 * self._bins)
        weight = count[filled].astype(np.float64)
        return Spectra(frequency[filled], reference, image, difference, shared, weight)


def _power(x: NDArray[Any]) -> NDArray[np.float32]:
    return x.real**2 + x.imag**2


def _fast_size(size: int) -> int:
    """Return the largest length up to `size` whose only prime factors are 2, 3 and 5."""
    while cv2.getOptimalDFTSize(size) != size:
        size -= 1
    return size
