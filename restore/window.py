"""The few frames of a shot that are in memory, and the hyperframe of the one to be restored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from restore.align import Aligner, View
from restore.analyse import NoiseCurve, noise_map
from restore.hyperframe import choose, feed_back, gather, pack
from restore.memory import pack_with_memory, remember

Array = np.ndarray


def reach(slots: int) -> int:
    """Return how many frames ahead a hyperframe of that many slots may look."""
    return slots // 2


class Window:
    """The frames of a shot that are looked at, linked, and the one to be restored among them."""

    def __init__(
        self,
        source: Iterator[tuple[Array, NoiseCurve, Array | None]],
        slots: int,
        aligner: Aligner,
        reference: int,
    ) -> None:
        """Begin before the first frame.

        Args:
            source: Frames with their noise and the pictures in which motion is searched, or None.
            slots: Slots of the hyperframe, T.
            aligner: How to align.
            reference: Index of the first frame to be restored.
        """
        self._source, self._slots, self._aligner = source, slots, aligner
        self._exhausted = False
        self.views: list[View] = []
        self.noise: list[NoiseCurve] = []
        self.reference = reference

    def fill(self) -> bool:
        """Read as far ahead as is looked, forget what is no longer; False after the last frame."""
        while not self._exhausted and len(self.views) <= self.reference + reach(self._slots):
            item = next(self._source, None)
            if item is None:
                self._exhausted = True
            else:
                self._append(*item)
        surplus = max(self.reference - (self._slots - 1), 0)
        del self.views[:surplus], self.noise[:surplus]
        self.reference -= surplus
        return self.reference < len(self.views)

    def hyperframe(self, previous: Array | None, scale: int) -> Array:
        """Align neighbours and previous output to the reference and lay them out."""
        views, reference = self.views, self.reference
        sigma = noise_map(self.noise[reference], views[reference].image)
        ahead = len(views) - 1 - reference
        takes_slot = previous is not None and scale == 1
        offsets = choose(self._slots, reference, ahead, feedback=takes_slot)
        parts = gather(views, reference, offsets, sigma, self._aligner)
        if previous is None:
            return pack(parts) if scale == 1 else pack_with_memory(parts, scale, None)
        near = views[reference], views[reference - 1]
        if scale == 1:
            return pack([feed_back(previous, *near, sigma), *parts])
        return pack_with_memory(parts, scale, remember(previous, *near, sigma, scale))

    def _append(self, image: Array, curve: NoiseCurve, guide: Array | None) -> None:
        self.views.append(self._aligner.view(image, guide))
        self.noise.append(curve)
        if self._slots > 1 and len(self.views) > 1:
            sigma = curve.mean_sigma if guide is None else 0.0
            self._aligner.link(self.views[-2], self.views[-1], sigma)
