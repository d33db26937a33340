"""Iterative alignment: consecutive flows, chained, then refined on the warped neighbour.

Each flow between consecutive frames is estimated once, both ways, and chained for neighbours
further away. Chaining adds up errors, so the pair is then looked at again: the residual flow
between the reference and the neighbour warped so far is composed with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from restore.align.confidence import confidence, half_size, residual_ratio, warp_energy
from restore.align.flow import DISFlow, FlowEstimator, global_shift, search_image
from restore.align.warp import compose, resize_flow, warp

Array = np.ndarray

SEARCH_NOISE = 0.21
"""White noise of a search image over that of a pixel: the area mean, the blur and the sum to luma
each take their part. Correlated noise keeps more of itself, and then takes no shortcut."""


@dataclass(frozen=True)
class Motion:
    """A flow at half size, shape (h, w, 2), and whether it is one vector for the whole picture."""

    flow: Array
    uniform: bool = False


@dataclass
class View:
    """A frame as the aligner sees it: its pixels, its search image, its ways to both sides."""

    image: Array
    search: Array
    to_next: Motion | None = None
    to_previous: Motion | None = None
    doubt: Array | None = None
    """Variance that the picture's own detail adds where motion is off by a little, (h, w)."""
    guide: Array | None = None
    """The restored picture in which motion was searched, (H, W, 3), uint8."""

    @classmethod
    def of(cls, image: Array) -> View:
        """Prepare a frame of shape (H, W, 3), float32 RGB."""
        return cls(image, search_image(image))


@dataclass(frozen=True)
class Aligned:
    """A neighbour seen from the reference."""

    image: Array
    """Warped picture, shape (H, W, 3)."""
    confidence: Array
    """Shape (H, W), 1 = trust."""
    energy: Array
    """Σw² of the warp, shape (H, W): the factor on the neighbour's noise variance."""
    motion: Motion
    """The flow used, at half size."""


class Aligner:
    """Aligns the frames of one shot to each other."""

    search_noise = SEARCH_NOISE

    def __init__(self, flow: FlowEstimator | None = None, *, refinements: int = 1) -> None:
        """Choose the flow (DIS by default) and how often a chained flow is refined."""
        self.flow = flow or DISFlow(smoothness=40.0)
        # What chaining leaves is small and smooth: the coarse flow finds it at a third of the cost.
        self.residual_flow = flow or DISFlow(finest_scale=1)
        self.refinements = refinements

    def view(self, image: Array, guide: Array | None = None) -> View:
        """Prepare a frame (H, W, 3) whose motion is searched in `guide`, or in itself."""
        return View(image, search_image(image if guide is None else guide))

    def link(self, previous: View, current: View, sigma: float) -> None:
        """Estimate the motion between two consecutive frames, both ways, and note it on them.

        Args:
            previous: The earlier frame.
            current: The frame after it.
            sigma: Typical noise of a pixel, range [0, 1]; the shortcuts are judged against it.
        """
        shift = global_shift(current.search, previous.search, sigma * 255 * self.search_noise)
        if shift is None:
            current.to_previous = Motion(self.flow(current.search, previous.search))
            previous.to_next = Motion(self.flow(previous.search, current.search))
            return
        there = np.empty((*current.search.shape, 2), np.float32)
        there[:] = shift
        current.to_previous = Motion(there, uniform=True)
        previous.to_next = Motion(-there, uniform=True)

    def motion(self, views: Sequence[View], reference: int, neighbour: int) -> Motion:
        """Return the refined flow from one frame of a linked run to another.

        Raises:
            ValueError: If frames between the two are not linked.
        """
        motion = chain(views, reference, neighbour)
        if motion.uniform or abs(neighbour - reference) < 2:
            return motion
        flow = motion.flow
        for _ in range(self.refinements):
            warped = warp(views[neighbour].search, flow)
            flow = compose(self.residual_flow(views[reference].search, warped), flow)
        return Motion(flow)

    def align(
        self, views: Sequence[View], reference: int, neighbour: int, variance: Array
    ) -> Aligned:
        """Warp a neighbour onto the reference and say where it can be trusted.

        Args:
            views: Linked frames of one shot.
            reference: Index of the frame to be restored.
            neighbour: Index of the frame to be aligned to it.
            variance: Mean over the channels of the reference's σ², at half size (h, w).
        """
        motion = self.motion(views, reference, neighbour)
        back = chain(views, neighbour, reference)
        image = warp_full(views[neighbour].image, motion)
        energy = warp_energy(motion.flow)
        ratio = residual_ratio(views[reference].image, image, variance, energy)
        trust = confidence(ratio, motion.flow, None if motion.uniform else back.flow)
        size = image.shape[1::-1]
        return Aligned(
            image,
            cv2.resize(trust, size, interpolation=cv2.INTER_LINEAR),
            cv2.resize(energy, size, interpolation=cv2.INTER_LINEAR),
            motion,
        )


def chain(views: Sequence[View], reference: int, neighbour: int) -> Motion:
    """Compose the consecutive flows from one frame to another.

    Raises:
        ValueError: If the two are the same or frames between them are not linked.
    """
    step = 1 if neighbour > reference else -1
    total: Motion | None = None
    for index in range(reference, neighbour, step):
        here = views[index].to_next if step > 0 else views[index].to_previous
        if here is None:
            raise ValueError(f"frame {index} has not been linked to its neighbour {index + step}")
        if total is None:
            total = here
        elif total.uniform and here.uniform:
            total = Motion(total.flow + here.flow, uniform=True)
        else:
            total = Motion(compose(total.flow, here.flow))
    if total is None:
        raise ValueError("the reference needs no alignment to itself")
    return total


def warp_full(image: Array, motion: Motion) -> Array:
    """Warp a full-size picture (H, W, C) along a flow at half size; a zero flow copies nothing."""
    if not motion.flow.any():
        return image
    return warp(image, resize_flow(motion.flow, *image.shape[:2]))


def half_variance(sigma: Array) -> Array:
    """Return the mean over the channels of σ² at half size, from σ maps (H, W, 3)."""
    squared = cv2.transform(cv2.multiply(sigma, sigma), np.full((1, 3), 1 / 3, np.float32))
    return half_size(squared)
