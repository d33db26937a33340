"""Restore a stream of frames: shots told apart, noise measured, one frame after the other.

Memory is bounded by the window, whatever the length of the stream. After every frame there is a
`Handover` from which another run can go on as if there had been no interruption.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby, islice, repeat, tee
from typing import Any, TypeVar

import numpy as np

from restore.align import Aligner, GuidedAligner, aligner_for
from restore.analyse import CutDetector, NoiseCurve, told
from restore.analyse.follow import MEASURED, follow_noise
from restore.handover import Handover
from restore.window import Window

Array = np.ndarray
Item = TypeVar("Item")
Engine = Callable[[Array], Array]
"""A model as the loop sees it: hyperframe (T*8, H, W) in, clean picture (3, H, W) out.

One that enlarges says so in an attribute `scale`; what it takes is told in `restore.memory`."""


@dataclass(frozen=True)
class Preset:
    """How much is spent on a frame."""

    model: str
    slots: int
    passes: int = 1

    @property
    def context(self) -> int:
        """Earlier frames that the restoration of a frame may look at."""
        return max(self.passes * (self.slots - 1), MEASURED - 1)


PRESETS = {
    "fast": Preset("edge", slots=1),
    "balanced": Preset("denoise", slots=5),
    "best": Preset("denoise-best", slots=7, passes=2),
}
"""Presets by name."""


def scale_of(engine: Engine) -> int:
    """Return the enlargement by a model; 1 if it says nothing."""
    return int(getattr(engine, "scale", 1))


def restore_shot(
    images: Iterable[Array],
    engine: Engine,
    curves: NoiseCurve | Iterable[NoiseCurve],
    *,
    slots: int,
    aligner: Aligner,
    feedback: bool | None = None,
    guides: Iterable[Array] | None = None,
    behind: int = 0,
    previous: Array | None = None,
) -> Iterator[Array]:
    """Restore consecutive frames of one shot.

    Args:
        images: Frames of shape (H, W, 3), float32 RGB, nominal [0, 1].
        engine: The model.
        curves: The noise: one curve for the shot, or one for each frame.
        slots: Slots of the hyperframe, T; fewer near the ends of the shot.
        aligner: How to align.
        feedback: Give the previous output back to the model. By default only where pictures are
            enlarged: a denoised one is worth less than the noisy neighbour whose slot it takes.
        guides: Frames in which motion is searched instead, one for each of `images`; None searches
            the frames themselves.
        behind: Number of leading frames that were restored before and are only looked at.
        previous: The last of those, restored.

    Yields:
        Clean frames, enlarged by the engine's scale, one for each frame in but those `behind`, in
        the same order; not clipped.
    """
    known = repeat(curves) if isinstance(curves, NoiseCurve) else curves
    source = zip(images, known, repeat(None) if guides is None else guides, strict=False)
    window = Window(source, slots, aligner, behind)
    scale = scale_of(engine)
    remembers = (scale > 1 if feedback is None else feedback) and slots > 1
    while window.fill():
        hyperframe = window.hyperframe(previous if remembers else None, scale)
        previous = np.ascontiguousarray(np.moveaxis(engine(hyperframe), 0, 2))
        yield previous
        window.reference += 1


def restore_twice(
    images: Iterable[Array],
    engine: Engine,
    curves: NoiseCurve | Iterable[NoiseCurve],
    *,
    slots: int,
    aligner: Aligner,
    second: Aligner | None = None,
    behind: int = 0,
    previous: Array | None = None,
) -> Iterator[Array]:
    """Restore a shot, then once more with the motion searched in the restored frames.

    The second pass also sees every frame mirrored and takes the mean of both. The first feeds
    nothing back, so that it can be taken up anywhere. Arguments and frames as in `restore_shot`, of
    a model that keeps the size; a few more frames are held. `aligner` is the first pass's, `second`
    the other's: by default motion is found at full size, where noise no longer hides it.
    """
    early, late = tee(images)
    known = (curves, curves) if isinstance(curves, NoiseCurve) else tee(curves)
    seen = min(behind, slots - 1)  # of these, the second pass needs the guides again
    guides = restore_shot(
        early, engine, known[0], slots=slots, aligner=aligner, feedback=False, behind=behind - seen
    )
    unseen = behind - seen
    noise = known[1] if isinstance(known[1], NoiseCurve) else islice(known[1], unseen, None)
    return restore_shot(
        islice(late, unseen, None),
        both_ways(engine),
        noise,
        slots=slots,
        aligner=second or GuidedAligner(),
        guides=guides,
        behind=seen,
        previous=previous,
    )


def both_ways(engine: Engine) -> Engine:
    """Return the mean of a model's answers to a hyperframe and to its mirror image.

    What the two get wrong is partly different: the cheapest ensemble there is.
    """

    def mean(hyperframe: Array) -> Array:
        mirrored = engine(np.ascontiguousarray(hyperframe[..., ::-1]))
        return 0.5 * (engine(hyperframe) + mirrored[..., ::-1])

    return mean


def restore_shots(
    items: Iterable[Item],
    picture: Callable[[Item], Array],
    engine: Engine,
    preset: Preset,
    sigma: float | None,
    handover: Handover | None = None,
) -> Iterator[tuple[Item, Array, Handover]]:
    """Restore a stream of frames, shot by shot: nothing crosses a cut.

    Args:
        items: Whatever carries the frames, in order.
        picture: Gives the frame of an item, shape (H, W, 3), float32 RGB, nominal [0, 1].
        engine: The model.
        preset: How much is spent on a frame.
        sigma: Noise level in [0, 1]; None measures it, shot by shot.
        handover: Where to go on; the first `handover.behind` items were restored before. None
            begins anew.

    Yields:
        Every other item with its picture restored, enlarged by the engine's scale, not clipped,
        and the handover to the item after it.
    """
    state = handover or Handover()
    scale = scale_of(engine)
    aligner = aligner_for(scale)
    source = iter(items)
    seen = [(item, False, state.detector) for item in islice(source, state.behind)]
    marked = chain(seen, _marked(source, picture, state.detector))
    for _, shot in groupby(marked, key=_ShotNumber()):
        steps = _continue_shot(shot, picture, engine, preset, sigma, aligner, state)
        for item, clean, after in steps:
            state = after
            yield item, clean, after
        state = Handover(levels=state.levels, detector=state.detector)


Marked = tuple[Item, bool, CutDetector | None]
"""An item, whether a shot starts with it, and a detector that has seen it and none after it."""


def _continue_shot(
    shot: Iterable[Marked[Item]],
    picture: Callable[[Item], Array],
    engine: Engine,
    preset: Preset,
    sigma: float | None,
    aligner: Aligner,
    state: Handover,
) -> Iterator[tuple[Item, Array, Handover]]:
    """Restore one shot from its first frame, or from where the state left it."""
    kept, shown, measured = tee(shot, 3)
    found, curves = tee(
        follow_noise((picture(m[0]) for m in measured), sigma, state.curves, state.age)
    )
    noise = found if sigma is not None else map(told, found)
    run = restore_shot if preset.passes == 1 else restore_twice
    restored = run(
        (picture(marked[0]) for marked in shown),
        engine,
        noise,
        slots=preset.slots,
        aligner=aligner,
        behind=state.behind,
        previous=state.previous,
    )
    new = zip(islice(kept, state.behind, None), islice(curves, state.behind, None), strict=False)
    recent = deque(state.curves, preset.context)
    age, levels = state.age, state.levels
    for clean in restored:
        (item, _, detector), curve = next(new)
        levels = levels if age else (*levels, curve.mean_sigma)
        age += 1
        recent.append(curve)
        yield item, clean, Handover(age, levels, tuple(recent), clean, detector)


def _marked(
    items: Iterable[Item], picture: Callable[[Item], Array], detector: CutDetector | None
) -> Iterator[Marked[Item]]:
    """Yield every item with whether a shot starts with it; see `restore.analyse.find_cuts`."""
    detector = CutDetector() if detector is None else detector.copy()
    answered_before = detector.pending
    waiting: deque[tuple[Item, CutDetector]] = deque()

    def answers() -> Iterator[bool]:
        for item in items:
            answer = detector.push(picture(item))
            waiting.append((item, detector.copy()))
            if answer is not None:
                yield answer
        yield from detector.finish()

    for starts in islice(answers(), answered_before, None):
        item, snapshot = waiting.popleft()
        yield item, starts, snapshot


class _ShotNumber:
    """Number the shot of each marked item that comes by."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, marked: Marked[Any]) -> int:
        self._number += marked[1]
        return self._number
