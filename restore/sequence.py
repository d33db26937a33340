"""Restore a stream of frames: shots told apart, noise measured, one frame after the other.

Memory is bounded by the window, whatever the length of the stream.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice, repeat, tee
from typing import Any, TypeVar

import numpy as np

from restore.align import Aligner, DISFlow, View
from restore.align.flow import search_image
from restore.analyse import NoiseCurve, estimate_noise, find_cuts, noise_map
from restore.hyperframe import choose, feed_back, gather, pack

Array = np.ndarray
Item = TypeVar("Item")
Engine = Callable[[Array], Array]
"""A model as the loop sees it: hyperframe (T*8, H, W) in, clean picture (3, H, W) out."""


@dataclass(frozen=True)
class Preset:
    """How much is spent on a frame."""

    model: str
    slots: int
    passes: int = 1
    finest_scale: int = 1


PRESETS = {
    "fast": Preset("denoise", slots=3),
    "balanced": Preset("denoise", slots=5),
    "best": Preset("denoise", slots=7, passes=2, finest_scale=0),
}
"""Presets by name."""

MEASURED = 5
"""Frames from which the noise of a shot is measured."""
REFRESH = 48
"""Frames after which it is measured again; lamps and gains change within a shot."""
SMOOTHING = 0.3
"""Weight of the newer measurement."""


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


def restore_shots(
    items: Iterable[Item],
    picture: Callable[[Item], Array],
    engine: Engine,
    preset: Preset,
    sigma: float | None,
    levels: list[float],
) -> Iterator[tuple[Item, Array]]:
    """Restore a stream of frames, shot by shot: nothing crosses a cut.

    Args:
        items: Whatever carries the frames, in order.
        picture: Gives the frame of an item, shape (H, W, 3), float32 RGB, nominal [0, 1].
        engine: The model.
        preset: How much is spent on a frame.
        sigma: Noise level in [0, 1]; None measures it, shot by shot.
        levels: Takes the mean σ of each shot.

    Yields:
        Every item with its picture restored, same shape, not clipped.
    """
    aligner = Aligner(DISFlow(preset.finest_scale))
    run = restore_shot if preset.passes == 1 else restore_twice
    marked = find_cuts(items, picture=picture)
    for _, shot in groupby(marked, key=_ShotNumber()):
        kept, shown, measured = tee((item for item, _ in shot), 3)
        curves = noise_of(map(picture, measured), sigma, levels)
        clean = run(map(picture, shown), engine, curves, slots=preset.slots, aligner=aligner)
        yield from zip(kept, clean, strict=True)


class _ShotNumber:
    """Number the shot of each (item, starts a new shot) that comes by."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, marked: tuple[Any, bool]) -> int:
        self._number += marked[1]
        return self._number


def noise_of(
    images: Iterable[Array], sigma: float | None, levels: list[float]
) -> Iterator[NoiseCurve]:
    """Yield the noise curve of every frame of a shot.

    It is measured on the first frames, again now and then, and moves slowly.

    Args:
        images: Frames of one shot, shape (H, W, 3).
        sigma: Noise level in [0, 1] that is given; None measures it.
        levels: Takes the mean σ of the shot, measured first.
    """
    if sigma is not None:
        levels.append(sigma)
        yield from repeat(NoiseCurve.white(sigma))
    source = iter(images)
    recent = deque(islice(source, MEASURED), MEASURED)
    curve = estimate_noise(recent)
    levels.append(curve.mean_sigma)
    yield from [curve] * len(recent)
    for number, image in enumerate(source, 1):
        recent.append(image)
        if number % REFRESH == 0:
            curve = curve.blend(estimate_noise(recent), SMOOTHING)
        yield curve
