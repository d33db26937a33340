"""Follow the noise of a shot: measured at its beginning, again now and then, moving slowly."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat

from restore.analyse.estimate import estimate_noise
from restore.analyse.noise import FloatArray, NoiseCurve

MEASURED = 5
"""Frames from which the noise of a shot is measured."""
REFRESH = 48
"""Frames after which it is measured again; lamps and gains change within a shot."""
SMOOTHING = 0.3
"""Weight of the newer measurement."""


def follow_noise(
    images: Iterable[FloatArray],
    sigma: float | None,
    known: Sequence[NoiseCurve] = (),
    age: int = 0,
) -> Iterator[NoiseCurve]:
    """Yield the noise curve of every frame of a shot.

    Args:
        images: Frames of one shot, shape (H, W, 3).
        sigma: Noise level in [0, 1] that is given; None measures it.
        known: The curves of the first of these frames, where measuring has begun before. To go on
            as if it had not stopped, four of them are needed, or all the shot has.
        age: How many frames of the shot had been measured then.
    """
    if sigma is not None:
        yield from repeat(NoiseCurve.white(sigma))
    source = iter(images)
    recent = deque(islice(source, len(known) or MEASURED), MEASURED)
    curve = known[-1] if known else estimate_noise(recent)
    yield from known or [curve] * len(recent)
    for number, image in enumerate(source, age or len(recent)):
        recent.append(image)
        since = number - MEASURED + 1
        if since > 0 and since % REFRESH == 0:
            curve = curve.blend(estimate_noise(recent), SMOOTHING)
        yield curve
