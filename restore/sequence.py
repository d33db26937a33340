"""Restore the frames of one shot, one after the other, with bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from restore.align import Aligner, View
from restore.analyse.noise import NoiseCurve, noise_map
from restore.hyperframe import choose, feed_back, gather, pack

Array = np.ndarray
Engine = Callable[[Array], Array]
"""A model as the loop sees it: hyperframe (T*8, H, W) in, clean picture (3, H, W) out."""


def reach(slots: int) -> int:
    """Return how many frames ahead a hyperframe of that many slots may look."""
    return slots // 2


def restore_shot(
    images: Iterable[Array],
    engine: Engine,
    curve: NoiseCurve,
    *,
    slots: int,
    aligner: Aligner,
    feedback: bool = True,
) -> Iterator[Array]:
    """Restore consecutive frames of one shot.

    Args:
        images: Frames of shape (H, W, 3), float32 RGB, nominal [0, 1].
        engine: The model.
        curve: The noise of the shot.
        slots: Slots of the hyperframe, T; fewer near the ends of the shot.
        aligner: How to align.
        feedback: Give the previous output back to the model as a slot.

    Yields:
        Clean frames, same shape, one for each frame in, in the same order; not clipped.
    """
    radius = reach(slots)
    views: list[View] = []
    reference = 0
    previous: Array | None = None
    source = iter(images)
    exhausted = False
    while True:
        while not exhausted and len(views) <= reference + radius:
            image = next(source, None)
            if image is None:
                exhausted = True
                break
            views.append(View.of(image))
            if slots > 1 and len(views) > 1:
                aligner.link(views[-2], views[-1], curve.mean_sigma)
        if reference >= len(views):
            return
        sigma = noise_map(curve, views[reference].image)
        use = feedback and previous is not None and slots > 1
        ahead = len(views) - 1 - reference
        offsets = choose(slots, reference, ahead, feedback=use)
        parts = gather(views, reference, offsets, sigma, aligner)
        if use and previous is not None:
            back = feed_back(previous, views[reference], views[reference - 1], sigma)
            parts.insert(0, back)
        clean = engine(pack(parts))
        previous = np.ascontiguousarray(np.moveaxis(clean, 0, 2))
        yield previous
        if reference >= slots - 1:
            views.pop(0)
        else:
            reference += 1
