"""Energy of 8 × 8 blocks in bands of spatial frequency."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from restore.analyse.noise import FloatArray

BLOCK = 8
_LIMIT = 0.5 / 255  # a sample this near to 0 or 1 counts as clipped
_HIGH, _HIGHEST = 8, 11  # horizontal plus vertical DCT index from which the two high bands start


@dataclass(frozen=True)
class BlockStatistics:
    """Hold what is measured on every block; each array has shape (frames, blocks, 3).

    All variances are per pixel, as if the band's energy per coefficient held for all coefficients:
    white noise of variance v has v in every band.

    Args:
        mean: Mean of the block.
        clipped: Share of the pixels which lie on 0 or on 1.
        full: Variance after a plane has been taken away.
        high: Variance in the upper half of the diagonals of the DCT, the last ones excepted.
        highest: Variance in the last diagonals.
    """

    mean: FloatArray
    clipped: FloatArray
    full: FloatArray
    high: FloatArray
    highest: FloatArray


def block_statistics(frames: FloatArray, max_blocks: int) -> BlockStatistics:
    """Measure the blocks of some frames.

    Args:
        frames: Array of shape (T, H, W, 3), at least 8 × 8.
        max_blocks: With more blocks in a frame, only every second (third, …) one is measured.
    """
    blocks = _cut(frames, max_blocks)
    basis, splits = _basis()
    mean = blocks.mean(-1)
    from_limit = np.abs(np.abs(blocks - 0.5) - 0.5)
    blocks -= mean[..., None]  # or squares of a bright block drown a weak noise in float32
    coefficients = blocks @ basis
    np.square(coefficients, out=coefficients)
    plane = coefficients[..., : splits[0]].sum(-1)
    middle = coefficients[..., splits[0] : splits[1]]
    last = coefficients[..., splits[1] :]
    total = np.einsum("...i,...i->...", blocks, blocks)
    size = BLOCK * BLOCK
    return BlockStatistics(
        mean=mean,
        clipped=(from_limit < _LIMIT).mean(-1, dtype=np.float32),
        full=np.maximum(total - plane, 0) / (size - splits[0]),
        high=middle.mean(-1),
        highest=last.mean(-1),
    )


def paired_in_space(blocks: BlockStatistics) -> BlockStatistics:
    """Turn one frame into two of half as many blocks: each block and the one beside it.

    Texture is mostly the same in neighbours and noise is not, as in two consecutive frames.
    """
    count = blocks.mean.shape[1] // 2 * 2

    def split(values: FloatArray) -> FloatArray:
        return np.concatenate([values[:, 0:count:2], values[:, 1:count:2]])

    return BlockStatistics(
        mean=split(blocks.mean),
        clipped=split(blocks.clipped),
        full=split(blocks.full),
        high=split(blocks.high),
        highest=split(blocks.highest),
    )


def _cut(frames: FloatArray, max_blocks: int) -> FloatArray:
    count, height, width, _ = frames.shape
    rows, columns = height // BLOCK, width // BLOCK
    step = max(1, math.ceil(rows * columns / max_blocks))
    view = frames[:, : rows * BLOCK, : columns * BLOCK]
    view = view.reshape(count, rows, BLOCK, columns, BLOCK, 3)
    if step > 1:  # whole rows of blocks, spread over the height
        view = view[:, step // 2 :: step]
    blocks = view.transpose(0, 1, 3, 5, 2, 4)
    return np.ascontiguousarray(blocks, np.float32).reshape(count, -1, 3, BLOCK * BLOCK)


@functools.cache
def _basis() -> tuple[FloatArray, tuple[int, int]]:
    """Return the DCT basis functions needed, (64, n): plane, then high, then highest band."""
    k, x = np.mgrid[:BLOCK, :BLOCK]
    dct = np.sqrt(np.where(k == 0, 1, 2) / BLOCK) * np.cos(np.pi * k * (2 * x + 1) / 16)
    index = np.add.outer(np.arange(BLOCK), np.arange(BLOCK))
    chosen = [np.argwhere(index <= 1)]
    chosen.append(np.argwhere((index >= _HIGH) & (index < _HIGHEST)))
    chosen.append(np.argwhere(index >= _HIGHEST))
    functions = [np.outer(dct[u], dct[v]).ravel() for u, v in np.concatenate(chosen)]
    basis = np.stack(functions, 1).astype(np.float32)
    return basis, (len(chosen[0]), len(chosen[0]) + len(chosen[1]))


@functools.cache
def _clipping_table() -> tuple[FloatArray, FloatArray]:
    normal = NormalDist()
    shares, ratios = [0.0], [1.0]
    for share in np.linspace(0.005, 0.9, 180):
        edge = normal.inv_cdf(float(share))
        density = normal.pdf(edge)
        mean = edge * share + density
        square = edge**2 * share + (1 - share) + edge * density
        shares.append(float(share))
        ratios.append(square - mean**2)
    return np.array(shares, np.float32), np.array(ratios, np.float32)


def clipped_variance_ratio(clipped: FloatArray) -> FloatArray:
    """Return the share of a Gaussian's variance which is left when its end is clipped.

    Args:
        clipped: Share of the samples that were moved to the limit, 0 to 0.9, any shape.

    References:
        The moments of the censored normal distribution, e.g. Greene, "Econometric Analysis",
        theorem 19.3.
    """
    shares, ratios = _clipping_table()
    return np.interp(clipped, shares, ratios).astype(np.float32)
