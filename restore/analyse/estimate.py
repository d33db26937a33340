"""Measure the noise of a shot from its own frames.

Every frame is cut into 8 × 8 blocks. Blocks with little texture are chosen on some of the frames
and measured on the others, where texture is the same and noise is new, so that choosing the quiet
ones does not bias the measurement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from restore.analyse.bands import (
    BLOCK,
    BlockStatistics,
    block_statistics,
    clipped_variance_ratio,
    paired_in_space,
)
from restore.analyse.noise import FloatArray, NoiseCurve

Float64Array = npt.NDArray[np.float64]

UNSEEN = 4 / 255
"""σ that a model is told beside a measured one: an encoder drops detail where no quiet block shows
it. Whether it did, the model sees better than any measurement; told of nothing it would not act."""

_MAX_FRAMES = 5
_MAX_BLOCKS = 2400  # a frame of 854 × 480 has 6360
_MIN_BLOCKS = 12
_QUIET = 0.08  # share of the blocks of one intensity taken as free of texture
_CLIPPED = 0.4  # blocks with more clipped pixels than this say nothing about the noise
_ZERO = (0.25 / 255) ** 2  # less variance than rounding leaves: a synthetic area

# Tables over the fall of the spectrum, the ratio of σ in the highest band to σ in the high one:
# 1 for white noise, 0.61 after a blur of 0.6 px, about 0.5 after H.264. Measured on clips of known
# noise: (ratios), (values).
_WHITE = ((0.68, 0.80), (0.0, 1.0))  # how far the noise is white
_HIGH_SHARE = ((0.5, 0.61, 1.0), (0.5, 0.69, 1.0))  # σ of the high band over σ of the full one
_LOST = ((0.5, 0.61), (1.22, 1.04))  # σ of all pixels over σ of quiet blocks, without their mean
# Compression of a nearly clean clip costs detail which no quiet block shows.
_DETAIL, _DETAIL_SCALE = ((0.48, 0.60), (0.8, 0.0)), (7 / 255) ** 2


def estimate_noise(frames: Sequence[FloatArray]) -> NoiseCurve:
    """Estimate the noise of consecutive frames of one shot.

    σ is the standard deviation of noisy minus clean per pixel, before clipping. Bars, clipped and
    synthetic areas are left out; a clip without noise gives about zero.

    Args:
        frames: One or more frames of shape (H, W, 3), float32 RGB, nominally in [0, 1]; of more
            than five, five spread over the sequence are used.

    Returns:
        The curve σ²(x) of each channel.

    Raises:
        ValueError: If there is no frame or the frames are not all of one shape (H, W, 3).
    """
    clip = _stack(frames)
    if min(clip.shape[1:3]) < 2 * BLOCK:
        return NoiseCurve.white(0)
    blocks = block_statistics(_without_bars(clip), _MAX_BLOCKS)
    if len(clip) == 1:
        blocks = paired_in_space(blocks)
    fits = [_fit_channel(blocks, channel) for channel in range(3)]
    red, green, blue = fits
    return NoiseCurve((red[0], green[0], blue[0]), (red[1], green[1], blue[1]))


def told(measured: NoiseCurve) -> NoiseCurve:
    """Return what a model is told of a measured curve: the same with `UNSEEN` beside it."""
    return measured.plus(UNSEEN)


def _stack(frames: Sequence[FloatArray]) -> FloatArray:
    if not len(frames):
        raise ValueError("at least one frame is needed to estimate noise")
    shape = np.shape(frames[0])
    if len(shape) != 3 or shape[2] != 3 or any(np.shape(f) != shape for f in frames):
        raise ValueError("frames must all have one shape (H, W, 3)")
    count = min(len(frames), _MAX_FRAMES)
    chosen = np.linspace(0, len(frames) - 1, count).round().astype(int)
    distinct = [np.asarray(frames[chosen[0]], np.float32)]
    for i in chosen[1:]:  # a repeated frame has no new noise
        if not np.array_equal(frames[i], distinct[-1]):
            distinct.append(np.asarray(frames[i], np.float32))
    return np.stack(distinct)


def _without_bars(clip: FloatArray) -> FloatArray:
    """Cut off dark bars at the edges: rows and columns without contrast in every frame."""
    green = np.ascontiguousarray(clip[:, ::2, ::2, 1])
    rows = _inside(green.std(2), green.mean(2))
    columns = _inside(green.std(1), green.mean(1))
    return clip[:, slice(*rows), slice(*columns)]


def _inside(spread: FloatArray, mean: FloatArray) -> tuple[int, int | None]:
    bar = np.all((spread < 1.5 / 255) & (mean < 0.1), axis=0)
    inside = np.flatnonzero(~bar)
    if len(inside) < BLOCK:
        return 0, None
    # One more line on each side: the soft edge between bar and picture.
    first = 0 if inside[0] == 0 else 2 * int(inside[0]) + 2
    last = None if inside[-1] == bar.size - 1 else 2 * int(inside[-1]) - 1
    return first, last


def _fit_channel(blocks: BlockStatistics, channel: int) -> tuple[float, float]:
    """Return slope and intercept of the variance of one channel."""
    clipped = blocks.clipped[..., channel]
    ratio = clipped_variance_ratio(np.minimum(clipped, 0.9))
    full = blocks.full[..., channel] / ratio
    valid = (clipped < _CLIPPED).all(0)
    zero = valid & (full.mean(0) < _ZERO)
    if np.count_nonzero(valid) < _MIN_BLOCKS or 2 * zero.sum() > valid.sum():
        return 0.0, 0.0
    use = np.flatnonzero(valid & ~zero)
    bands = [full, blocks.high[..., channel] / ratio, blocks.highest[..., channel] / ratio]
    bands = [band[:, use] for band in bands]
    mean = blocks.mean[:, use, channel].mean(0)
    bins = np.array_split(np.argsort(mean, kind="stable"), np.clip(len(use) // 120, 1, 8))
    points = [_measure([band[:, b] for band in bands], mean[b]) for b in bins]
    return _fit_line(*np.array(points, np.float64).T)


def _measure(bands: list[FloatArray], mean: FloatArray) -> tuple[float, float, float]:
    """Return intensity, variance and number of blocks for the quiet blocks of one intensity."""
    full, high, highest = bands
    count = full.shape[1]
    quiet = min(count, max(_MIN_BLOCKS, round(_QUIET * count)))
    values = []
    even, odd = slice(0, None, 2), slice(1, None, 2)
    for choose, measure in ((even, odd), (odd, even)):
        chosen = np.argsort(full[choose].mean(0), kind="stable")[:quiet]
        picks = [band[measure][:, chosen].mean() for band in (full, high, highest)]
        values.append([*picks, mean[chosen].mean()])
    total, upper, top, intensity = np.mean(values, 0)
    return float(intensity), _combine(total, upper, top), float(quiet)


def _combine(full: float, high: float, highest: float) -> float:
    """Return the variance of the noise from what three bands say.

    Where the spectrum is flat at its upper end the noise is white and the highest band, which
    texture hardly reaches, is right. Where it falls, the noise has been filtered (demosaicing,
    scaling) or compressed: how fast it falls tells what the high band would have to be for all of
    the full band to be noise, the rest being texture, and how much the quiet blocks have lost.
    """
    if min(full, high, highest) <= 0:
        return 0.0
    fall = math.sqrt(highest / high)
    white = float(np.interp(fall, *_WHITE))
    noise = min(full, high / float(np.interp(fall, *_HIGH_SHARE)) ** 2)
    noise *= float(np.interp(fall, *_LOST)) ** 2
    detail = float(np.interp(math.sqrt(high / full), *_DETAIL))
    noise *= (1 + detail * math.exp(-noise / _DETAIL_SCALE)) ** 2
    return white * min(highest, full) + (1 - white) * noise


def _fit_line(x: Float64Array, y: Float64Array, count: Float64Array) -> tuple[float, float]:
    """Fit a line that is nowhere negative in [0, 1]; points above it are trusted less."""
    weight = count / np.maximum(y, 1e-9) ** 2
    flat = float((weight * y).sum() / weight.sum())
    if len(x) < 3 or np.ptp(x) < 0.15:
        return 0.0, flat
    robust = np.ones_like(y)
    slope, intercept = 0.0, flat
    for _ in range(8):
        w = weight * robust
        centre = (w * x).sum() / w.sum()
        level = (w * y).sum() / w.sum()
        slope = (w * (x - centre) * (y - level)).sum() / max((w * (x - centre) ** 2).sum(), 1e-12)
        slope = float(np.clip(slope, -level / max(1 - centre, 1e-3), level / max(centre, 1e-3)))
        intercept = float(level - slope * centre)
        error = (y - intercept - slope * x) / np.maximum(intercept + slope * x, 0.1 * level)
        robust = 1 / (1 + (np.maximum(error, 0) / 0.2) ** 2 + (np.minimum(error, 0) / 0.4) ** 2)
    return slope, max(intercept, 0.0, -slope)
