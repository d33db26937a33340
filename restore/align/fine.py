"""Alignment at full size: motion to a fraction of a pixel.

Where noise does not hide it, motion is searched at full size and at the finest level: in small
pictures that are to be enlarged (at half size it is 1 to 7 dB worse: measured), and in frames that
were restored once already.

Neighbours add detail to an enlarged picture only where they show other parts of a pixel than the
reference does, so that warp is bicubic. Detail finer than the pixel grid differs from frame to
frame even where the motion is right; that counts as noise when trust is decided, or trust would
vanish exactly where the neighbours help.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from restore.align.confidence import confidence, half_size, residual_ratio, warp_energy
from restore.align.flow import DISFlow, FlowEstimator
from restore.align.refine import Aligned, Aligner, Motion, View, chain
from restore.align.warp import resize_flow, warp

Array = np.ndarray

MISS = 0.35
"""Pixels by which good motion may be off: with the local slope it makes a residual."""
ALIAS = (2.0 / 255.0) ** 2
"""Variance that detail beyond the pixel grid leaves everywhere."""


def fine_search_image(image: Array) -> Array:
    """Return the slightly smoothed luma at full size, (H, W) uint8, from (H, W, 3) float32 RGB."""
    luma = cv2.GaussianBlur(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), (5, 5), 0.7)
    return cv2.convertScaleAbs(cv2.max(luma, 0.0), alpha=255.0)


def doubt(image: Array) -> Array:
    """Return the variance that a small error of the motion makes, at half size (h, w)."""
    luma = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    slopes = [cv2.Sobel(luma, cv2.CV_32F, x, 1 - x, scale=1 / 8) for x in (0, 1)]
    squared = half_size(slopes[0] * slopes[0] + slopes[1] * slopes[1])
    return cv2.blur(squared, (3, 3), borderType=cv2.BORDER_REPLICATE) * MISS**2 + ALIAS


def at_half_size(motion: Motion, height: int, width: int) -> Motion:
    """Return the motion of a picture of that size as its flow at half size."""
    half = resize_flow(motion.flow, (height + 1) // 2, (width + 1) // 2)
    return Motion(half, motion.uniform)


class FullSizeAligner(Aligner):
    """Aligns frames along flows at full size, searched in frames with little noise."""

    search_noise = 0.27  # the luma's share of a pixel's white noise, times the blur's
    cubic = False

    def __init__(self, flow: FlowEstimator | None = None, *, refinements: int = 1) -> None:
        """Choose the flow (DIS down to single pixels by default) and the refinements."""
        super().__init__(flow or DISFlow(0), refinements=refinements)

    def view(self, image: Array, guide: Array | None = None) -> View:
        """Prepare a frame (H, W, 3) whose motion is searched in `guide`, or in itself."""
        return View(image, fine_search_image(image if guide is None else guide))

    def align(
        self, views: Sequence[View], reference: int, neighbour: int, variance: Array
    ) -> Aligned:
        """Warp a neighbour onto the reference; arguments as in `Aligner`, the flow at full size."""
        here = views[reference]
        motion = self.motion(views, reference, neighbour)
        back = chain(views, neighbour, reference)
        image = warp_fine(views[neighbour].image, motion, cubic=self.cubic)
        size = image.shape[:2]
        half = at_half_size(motion, *size)
        energy = warp_energy(half.flow)
        trust = self.trust(here, image, half, at_half_size(back, *size), variance, energy)
        trust, energy = (
            cv2.resize(x, size[::-1], interpolation=cv2.INTER_LINEAR) for x in (trust, energy)
        )
        return Aligned(image, trust, energy, motion)

    @staticmethod
    def trust(
        reference: View, warped: Array, motion: Motion, back: Motion, variance: Array, energy: Array
    ) -> Array:
        """Return how far a warped picture can be trusted, at half size (h, w).

        Args:
            reference: What it should look like.
            warped: Shape (H, W, 3).
            motion: Reference -> neighbour at half size, and
            back: the way back.
            variance: Mean over the channels of σ² at half size.
            energy: Factor on the neighbour's share of it.
        """
        known = variance if reference.doubt is None else variance + reference.doubt
        ratio = residual_ratio(reference.image, warped, known, energy)
        return confidence(ratio, motion.flow, None if motion.uniform else back.flow)


class FineAligner(FullSizeAligner):
    """Aligns small frames that are to be enlarged: bicubic, lenient with detail beyond the grid."""

    cubic = True

    def view(self, image: Array, guide: Array | None = None) -> View:
        """Prepare a frame (H, W, 3) whose motion is searched in `guide`, or in itself."""
        view = super().view(image, guide)
        view.doubt = doubt(image)
        return view


def warp_fine(image: Array, motion: Motion, *, cubic: bool = True) -> Array:
    """Warp a picture (H, W, C) of any size along a flow; a zero flow copies nothing."""
    if not motion.flow.any():
        return image
    return warp(image, resize_flow(motion.flow, *image.shape[:2]), cubic=cubic)


def aligner_for(scale: int, flow: FlowEstimator | None = None) -> Aligner:
    """Return the aligner of a task: fine where the picture is to be enlarged."""
    return Aligner(flow) if scale == 1 else FineAligner(flow)
