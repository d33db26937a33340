"""Alignment for a second pass: motion searched, and doubted, in frames that were restored once.

Strong noise hides small motion, and it hides ghosts: whether a warped neighbour fits the reference
is seen in the restored frames as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np

from restore.align.confidence import agreement, residual_ratio
from restore.align.fine import FullSizeAligner, warp_fine
from restore.align.refine import Aligned, View

Array = np.ndarray

LEFT = 1 / 25
"""Share of the noise's variance that is left in a restored frame."""
LOST = (5.0 / 255.0) ** 2
"""Variance of the detail that it has lost, whatever the noise."""


class GuidedAligner(FullSizeAligner):
    """Aligns noisy frames along the motion between their restored versions."""

    def view(self, image: Array, guide: Array | None = None) -> View:
        """Prepare a frame (H, W, 3) and its restored version, `guide`."""
        view = super().view(image, guide)
        if guide is not None:
            view.guide = cv2.convertScaleAbs(cv2.max(guide, 0.0), alpha=255.0)
        return view

    def align(
        self, views: Sequence[View], reference: int, neighbour: int, variance: Array
    ) -> Aligned:
        """Warp a neighbour onto the reference; it is trusted where the guides agree, too.

        Arguments as in `Aligner`.
        """
        aligned = super().align(views, reference, neighbour, variance)
        here, there = views[reference].guide, views[neighbour].guide
        if here is None or there is None:
            return aligned
        warped = warp_fine(there, aligned.motion, cubic=False)
        expected = LEFT * variance + LOST
        here, warped = (x.astype(np.float32) / 255 for x in (here, warped))
        ratio = residual_ratio(here, warped, expected, np.ones_like(expected))
        trust = cv2.resize(agreement(ratio), here.shape[1::-1], interpolation=cv2.INTER_LINEAR)
        return replace(aligned, confidence=cv2.multiply(aligned.confidence, trust))
