"""Finds the window of a clip that is worth looking at: where something stays high."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from restore.metrics.fidelity import Image

_BLOCK = 16
WINDOW = (240, 320)
"""Height and width of the window, pixels; smaller for smaller pictures."""


@dataclass(frozen=True)
class Region:
    """A window of a clip around one frame."""

    frame: int
    """Number of the frame, counted in matched frames from 0."""
    top: int
    left: int
    height: int
    width: int
    score: float


class RegionFinder:
    """Streams energy maps and keeps the window in which three frames in a row are highest.

    Taking the least of three frames keeps a cut or a flash, which last one, from winning.
    """

    def __init__(self, height: int, width: int) -> None:
        self._size = (min(WINDOW[0], height), min(WINDOW[1], width))
        self._recent: list[NDArray[np.float32]] = []
        self._count = 0
        self.best: Region | None = None

    def add(self, frame: int, energy: Image) -> None:
        """Add the map (H, W) of a frame; larger is more interesting."""
        height, width = energy.shape
        rows, columns = max(height // _BLOCK, 1), max(width // _BLOCK, 1)
        coarse = cv2.resize(energy, (columns, rows), interpolation=cv2.INTER_AREA)
        self._recent = [*self._recent[-2:], coarse]
        least = np.minimum.reduce(self._recent)
        window = (
            min(max(self._size[1] * columns // width, 1), columns),
            min(max(self._size[0] * rows // height, 1), rows),
        )
        sums = cv2.boxFilter(least, -1, window, anchor=(0, 0), borderType=cv2.BORDER_CONSTANT)
        valid = sums[: rows - window[1] + 1, : columns - window[0] + 1]
        row, column = np.unravel_index(int(valid.argmax()), valid.shape)
        score = float(valid[row, column])
        self._count += 1
        # The least of fewer than three frames is no match for the others.
        if self.best is None or score > self.best.score or self._count <= 3:
            top = min(int(row) * height // rows, height - self._size[0])
            left = min(int(column) * width // columns, width - self._size[1])
            self.best = Region(frame, top, left, *self._size, score)
