"""Figures without a reference: what was removed, and how steady the clip is before and after."""

import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from restore.analyse import NoiseCurve, estimate_noise
from restore.metrics.fidelity import Image
from restore.metrics.regions import RegionFinder
from restore.metrics.spectral import RadialSpectrum

_BLOCK = 8
_STEADIEST = 0.25
"""Share of the blocks, the steadiest of the input, that stands for its static regions."""


class Removed:
    """What a restoration took away: its size, whiteness and likeness to the picture.

    Noise is unlike the picture; where fine detail was taken along, what was removed still looks
    like the detail that is left.
    """

    def __init__(self, height: int, width: int) -> None:
        self.spectrum = RadialSpectrum(height, width)
        self._sums = np.zeros(7)
        self._pixels = 0

    def add(self, before: Image, after: Image) -> tuple[float, float]:
        """Add a pair of (H, W, 3) pictures in [0, 1].

        Returns:
            This pair's level (0-255 units) and structure.
        """
        removed = before - after
        gray = cv2.cvtColor(removed, cv2.COLOR_RGB2GRAY)
        gray_after = cv2.cvtColor(after, cv2.COLOR_RGB2GRAY)
        detail = gray_after - cv2.GaussianBlur(gray_after, (0, 0), 1.5)
        sums = np.array(
            [
                sum(cv2.sumElems(removed)) / 3,
                cv2.norm(removed, cv2.NORM_L2SQR) / 3,
                cv2.sumElems(gray)[0],
                cv2.sumElems(detail)[0],
                cv2.norm(gray, cv2.NORM_L2SQR),
                cv2.norm(detail, cv2.NORM_L2SQR),
                gray.ravel().dot(detail.ravel()),
            ]
        )
        self._sums += sums
        self._pixels += gray.size
        self.spectrum.add(gray_after + gray, gray_after)
        return _level_and_structure(sums, gray.size)

    @property
    def level(self) -> float:
        """Standard deviation of what was removed, 0-255 units."""
        return _level_and_structure(self._sums, self._pixels)[0]

    @property
    def structure(self) -> float:
        """Correlation of what was removed with the fine detail that is left, -1 to 1.

        0: nothing of the picture was removed; 0.2 and more: detail was; below 0: it was sharpened.
        """
        return _level_and_structure(self._sums, self._pixels)[1]

    @property
    def whiteness(self) -> float:
        """Spectral flatness of what was removed: 1 for white noise."""
        spectra = self.spectrum.spectra
        return math.nan if spectra is None else spectra.whiteness


def _level_and_structure(sums: NDArray[np.float64], pixels: int) -> tuple[float, float]:
    if not pixels:
        return math.nan, math.nan
    mean, square, mean_r, mean_d, rr, dd, rd = sums / pixels
    level = 255 * math.sqrt(max(square - mean**2, 0.0))
    var_r, var_d = rr - mean_r**2, dd - mean_d**2
    if var_r <= 1e-12 or var_d <= 1e-12:
        return level, 0.0
    return level, float((rd - mean_r * mean_d) / math.sqrt(var_r * var_d))


class BlindFlicker:
    """Flicker before and after, in the blocks of 8x8 that change least in the input.

    The same blocks are measured in every clip, so before and after compare; 0-255 units, σ for
    independent noise of σ (a little below it for the input, whose calmest blocks were picked).
    """

    def __init__(self, clips: int) -> None:
        self._energy = np.zeros(clips)
        self._blocks = 0

    def add(self, changes: Sequence[Image]) -> list[float]:
        """Add the changes (current minus previous, (H, W, 3)) of the input and its restorations.

        Returns:
            The flicker of this pair of frames, one value a clip.
        """
        energies = [_block_means(change) for change in changes]
        calm = energies[0] <= np.quantile(energies[0], _STEADIEST)
        sums = np.array([energy[calm].sum() for energy in energies])
        count = int(np.count_nonzero(calm))
        self._energy += sums
        self._blocks += count
        return [255 * math.sqrt(x / count / 2) for x in sums]

    @property
    def values(self) -> list[float]:
        """The flicker of each clip, 0-255 units; NaN before the first pair."""
        if not self._blocks:
            return [math.nan] * len(self._energy)
        return [255 * math.sqrt(x / self._blocks / 2) for x in self._energy]


def _block_means(change: Image) -> NDArray[np.float64]:
    height, width = (max(side // _BLOCK, 1) for side in change.shape[:2])
    part = change[: height * _BLOCK, : width * _BLOCK]
    squares = cv2.multiply(part, part)
    means = cv2.resize(squares, (width, height), interpolation=cv2.INTER_AREA)
    return means.reshape(height, width, -1).mean(axis=2, dtype=np.float64)


class NoReference:
    """Compares restorations with their own input, frame by frame, in bounded memory.

    Args:
        height: Lines of every picture.
        width: Columns.
        clips: How many restorations of the input are compared.
        step: Every how many frames a pair of consecutive frames is examined.
    """

    def __init__(self, height: int, width: int, clips: int, step: int = 1) -> None:
        self._step = step
        self.removed = [Removed(height, width) for _ in range(clips)]
        self.worst = [RegionFinder(height, width) for _ in range(clips)]
        self.moving = RegionFinder(height, width)
        self.frames: list[list[dict[str, float]]] = [[] for _ in range(clips)]
        self._flicker = BlindFlicker(clips + 1)
        self._noise: list[list[float]] = [[] for _ in range(clips + 1)]
        self._previous: list[Image] | None = None
        self._count = 0

    def add(self, before: Image, after: Sequence[Image]) -> list[dict[str, float]]:
        """Add a frame of the input and of every restoration, (H, W, 3) RGB in [0, 1].

        Returns:
            The figures of this frame, one dictionary a restoration; most frames have only some.
        """
        pictures = [before, *after]
        results: list[dict[str, float]] = [{} for _ in after]
        examined = self._count % self._step == min(1, self._step - 1)
        if examined or self._previous is None:
            for number, figures in enumerate(results):
                level, structure = self.removed[number].add(before, after[number])
                figures["removed"], figures["structure"] = level, structure
                gap = cv2.cvtColor(cv2.absdiff(before, after[number]), cv2.COLOR_RGB2GRAY)
                self.worst[number].add(self._count, cv2.multiply(gap, gap))
        if examined and self._previous is not None:
            self._add_pair(self._previous, pictures, results)
        self._previous = pictures
        self._count += 1
        for kept, figures in zip(self.frames, results, strict=True):
            kept.append(figures)
        return results

    def _add_pair(
        self, old: Sequence[Image], new: Sequence[Image], results: list[dict[str, float]]
    ) -> None:
        changes = [b - a for a, b in zip(old, new, strict=True)]
        smooth = cv2.GaussianBlur(cv2.cvtColor(changes[0], cv2.COLOR_RGB2GRAY), (0, 0), 3)
        self.moving.add(self._count, cv2.absdiff(smooth, 0.0))
        flicker = self._flicker.add(changes)
        for number, figures in enumerate(results):
            figures["flicker_before"], figures["flicker_after"] = flicker[0], flicker[number + 1]
        for levels, pair in zip(self._noise, zip(old, new, strict=True), strict=True):
            levels.append(noise_level(estimate_noise(pair)))

    def mean(self, number: int) -> dict[str, float]:
        """Return the figures of restoration `number`; NaN where nothing could be measured."""
        removed, flicker = self.removed[number], self._flicker.values
        spectra = removed.spectrum.spectra
        return {
            "noise_before": _median(self._noise[0]),
            "noise_after": _median(self._noise[number + 1]),
            "removed": removed.level,
            "structure": removed.structure,
            "whiteness": removed.whiteness,
            "flicker_before": flicker[0],
            "flicker_after": flicker[number + 1],
            "high_gain_db": math.nan if spectra is None else spectra.high_gain_db,
        }


def noise_level(curve: NoiseCurve) -> float:
    """Return the standard deviation of a noise curve at mid grey, mean of channels, 0-255 units."""
    variance = np.maximum(np.asarray(curve.slope) * 0.5 + np.asarray(curve.intercept), 0)
    return 255 * math.sqrt(float(variance.mean()))


def _median(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else math.nan
