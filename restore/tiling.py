"""Cut a picture into overlapping tiles and put the results together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Tile:
    """A part of a picture: what is read, and which part of that is kept."""

    top: int
    left: int
    bottom: int
    right: int
    """Bounds of what is kept."""
    margin: tuple[int, int, int, int]
    """Extra rows and columns read on the top, left, bottom and right."""

    @property
    def read(self) -> tuple[slice, slice]:
        """Rows and columns to be read."""
        top, left, bottom, right = self.margin
        rows = slice(self.top - top, self.bottom + bottom)
        return rows, slice(self.left - left, self.right + right)


def split(height: int, width: int, *, tile: int, margin: int, multiple: int) -> Iterator[Tile]:
    """Cover a picture with tiles whose kept parts touch and do not overlap.

    A margin of at least the receptive field of a model, and offsets that are multiples of its own
    step, make the tiled result equal to the whole one.

    Args:
        height: Rows of the picture.
        width: Columns of the picture.
        tile: Side of the kept part, rounded up to `multiple`.
        margin: Rows and columns read beyond it where there are any, rounded up to `multiple`.
        multiple: Step of the model.

    Yields:
        Tiles, row by row.
    """
    side = -(-tile // multiple) * multiple
    extra = -(-margin // multiple) * multiple
    for top in range(0, height, side):
        for left in range(0, width, side):
            bottom, right = min(top + side, height), min(left + side, width)
            around = min(extra, top), min(extra, left)
            beyond = min(extra, height - bottom), min(extra, width - right)
            yield Tile(top, left, bottom, right, (*around, *beyond))


def run_tiled(
    model: Callable[[Array], Array],
    picture: Array,
    *,
    tile: int,
    margin: int,
    multiple: int,
    scale: int = 1,
) -> Array:
    """Run a model tile by tile.

    Args:
        model: (C, h, w) in, (K, h * scale, w * scale) out.
        picture: Shape (C, H, W).
        tile: Side of a tile's kept part.
        margin: Overlap, see `split`.
        multiple: Step of the model.
        scale: Enlargement by the model.

    Returns:
        Shape (K, H * scale, W * scale).
    """
    height, width = picture.shape[-2:]
    out: Array | None = None
    for part in split(height, width, tile=tile, margin=margin, multiple=multiple):
        result = model(np.ascontiguousarray(picture[(slice(None), *part.read)]))
        if out is None:
            out = np.empty((result.shape[0], height * scale, width * scale), result.dtype)
        top, left = part.margin[0] * scale, part.margin[1] * scale
        rows, columns = (part.bottom - part.top) * scale, (part.right - part.left) * scale
        kept = result[:, top : top + rows, left : left + columns]
        at = slice(part.top * scale, part.bottom * scale)
        out[:, at, part.left * scale : part.right * scale] = kept
    if out is None:
        raise ValueError(f"an empty picture: {picture.shape}")
    return out
