"""Restore the frames of one shot, one after the other, with bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat, tee

import numpy as np

from restore.align import Aligner, View
from restore.align.flow import search_image
from restore.analyse import NoiseCurve, noise_map
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
    curves: NoiseCurve | Iterable[NoiseCurve],
    *,
    slots: int,
    aligner: Aligner,
    feedback: bool = True,
    guides: Iterable[Array] | None = None,
) -> Iterator[Array]:
    """Restore consecutive frames of one shot.

    Args:
        images: Frames of shape (H, W, 3), float32 RGB, nominal [0, 1].
        engine: The model.
        curves: The noise: one curve for the shot, or one for each frame.
        slots: Slots of the hyperframe, T; fewer near the ends of the shot.
        aligner: How to align.
        feedback: Give the previous output back to the model as a slot.
        guides: Frames in which motion is searched instead, one for each of `images`; None searches
            the frames themselves.

    Yields:
        Clean frames, same shape, one for each frame in, in the same order; not clipped.
    """
    known = repeat(curves) if isinstance(curves, NoiseCurve) else curves
    source = zip(images, known, repeat(None) if guides is None else guides, strict=False)
    views: list[View] = []
    noise: list[NoiseCurve] = []
    reference = 0
    previous: Array | None = None
    exhausted = False
    while True:
        while not exhausted and len(views) <= reference + reach(slots):
            item = next(source, None)
            if item is None:
                exhausted = True
                break
            image, curve, guide = item
            views.append(View(image, search_image(image if guide is None else guide)))
            noise.append(curve)
            if slots > 1 and len(views) > 1:
                aligner.link(views[-2], views[-1], curve.mean_sigma if guide is None else 0.0)
        if reference >= len(views):
            return
        sigma = noise_map(noise[reference], views[reference].image)
        use = feedback and previous is not None and slots > 1
        ahead = len(views) - 1 - reference
        parts = gather(
            views, reference, choose(slots, reference, ahead, feedback=use), sigma, aligner
        )
        if use and previous is not None:
            back = feed_back(previous, views[reference], views[reference - 1], sigma)
            parts.insert(0, back)
        clean = engine(pack(parts))
        previous = np.ascontiguousarray(np.moveaxis(clean, 0, 2))
        yield previous
        if reference >= slots - 1:
            del views[0], noise[0]
        else:
            reference += 1


def restore_twice(
    images: Iterable[Array],
    engine: Engine,
    curves: NoiseCurve | Iterable[NoiseCurve],
    *,
    slots: int,
    aligner: Aligner,
) -> Iterator[Array]:
    """Restore a shot, then once more with the motion searched in the restored frames.

    Arguments and frames as in `restore_shot`; a few more frames are held.
    """
    pictures = tee(images)
    known = (curves, curves) if isinstance(curves, NoiseCurve) else tee(curves)
    guides = restore_shot(pictures[0], engine, known[0], slots=slots, aligner=aligner)
    return restore_shot(pictures[1], engine, known[1], slots=slots, aligner=aligner, guides=guides)
