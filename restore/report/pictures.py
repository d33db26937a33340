"""The pictures of a report: still frames and moving windows, cut from the files in one pass."""

import base64
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from restore.memory import enlarge
from restore.metrics.evaluate import Evaluation, open_all, picture
from restore.metrics.fidelity import Image
from restore.metrics.matching import Matcher
from restore.metrics.regions import Region

Bytes = NDArray[np.uint8]

_LOOP_FRAMES = 24
_WEBP_SIDE = 16383
_MAX_WIDTH = 1920


@dataclass
class Still:
    """One frame of every source."""

    title: str
    frame: int
    images: list[Bytes | None] = field(default_factory=list)
    """(H, W, 3) RGB per source, None where a source has no such frame."""
    residuals: list[Bytes | None] = field(default_factory=list)
    """First source minus each other one, amplified around mid grey."""
    gain: int = 1


@dataclass
class Loop:
    """A few consecutive frames of a window, of every source."""

    title: str
    region: Region
    frames: list[list[Bytes]]
    """Per source, (h, w, 3) RGB pictures; sources that lack a frame repeat their last one."""


@dataclass
class Gallery:
    """All pictures of a report."""

    stills: list[Still]
    loops: list[Loop]


def collect(evaluations: Sequence[Evaluation]) -> Gallery:
    """Read the files again and keep the frames and windows that the evaluations point to.

    Args:
        evaluations: Outputs of one reference or one input.
    """
    first = evaluations[0]
    stills = [Still(title, frame) for title, frame in _choose_stills(evaluations)]
    loops = [Loop(title, region, [[] for _ in range(len(evaluations) + 1)])
             for title, region in _choose_regions(evaluations)]  # fmt: skip
    spans = [_span(loop.region.frame, len(first.frames)) for loop in loops]
    last = max([still.frame for still in stills] + [span[1] - 1 for span in spans], default=0)
    with ExitStack() as stack:
        source, readers = open_all(
            stack, first.reference, [e.output for e in evaluations], first.start, first.duration
        )
        turns = source.info.rotation // 90
        matcher = Matcher(source, readers, align=first.align, enlarged=first.blind)
        for number, (frame, others) in enumerate(matcher):
            wanted = [still for still in stills if still.frame == number]
            moving = [loop for loop, (a, b) in zip(loops, spans, strict=True) if a <= number < b]
            if wanted or moving:
                images = [None if x is None else picture(x) for x in others]
                images.insert(0, enlarge(picture(frame), matcher.scale))
                for still in wanted:
                    _fill_still(still, images, turns)
                for loop in moving:
                    _fill_loop(loop, images, turns)
            if number >= last:
                break
    return Gallery(stills, loops)


def _choose_stills(evaluations: Sequence[Evaluation]) -> list[tuple[str, int]]:
    first = evaluations[0]
    count = len(first.frames)
    name: Literal["removed", "psnr"] = "removed" if first.blind else "psnr"
    known = [(frame[name], number) for number, frame in enumerate(first.frames) if name in frame]
    chosen = {count // 2: "middle"}
    if known and first.blind:
        chosen.setdefault(max(known)[1], "most removed")
    elif known:
        chosen.setdefault(min(known)[1], "lowest PSNR")
    if first.moving is not None:
        chosen.setdefault(first.moving.frame, "most motion")
    return [(title, frame) for frame, title in chosen.items()]


def _choose_regions(evaluations: Sequence[Evaluation]) -> list[tuple[str, Region]]:
    first = evaluations[0]
    worst = "Where most was removed" if first.blind else "Where the output is farthest off"
    pairs = (("Where it moves most", first.moving), (worst, first.worst))
    return [(title, region) for title, region in pairs if region is not None]


def _span(frame: int, count: int) -> tuple[int, int]:
    """Return the first frame and the end of a loop around a frame."""
    begin = max(min(frame - _LOOP_FRAMES // 2, count - _LOOP_FRAMES), 0)
    return begin, begin + _LOOP_FRAMES


def _fill_still(still: Still, images: Sequence[Image | None], turns: int) -> None:
    still.images = [None if x is None else _to_bytes(x, turns) for x in images]
    base = images[0]
    assert base is not None, "the first source sets the frames"
    gaps = [None if x is None else base - x for x in images[1:]]
    spread = max((float(gap.std()) for gap in gaps if gap is not None), default=0.0)
    still.gain = int(np.clip(0.12 / max(spread, 1e-6), 1, 32))
    still.residuals = [
        None if gap is None else _to_bytes(0.5 + still.gain * gap, turns) for gap in gaps
    ]


def _fill_loop(loop: Loop, images: Sequence[Image | None], turns: int) -> None:
    r = loop.region
    window = (slice(r.top, r.top + r.height), slice(r.left, r.left + r.width))
    for kept, image in zip(loop.frames, images, strict=True):
        if image is not None:
            kept.append(_to_bytes(image[window], turns))
        elif kept:
            kept.append(kept[-1])


def _to_bytes(image: Image, turns: int) -> Bytes:
    """Return the picture as 8-bit RGB, upright, at most 1920 pixels wide."""
    upright = np.ascontiguousarray(np.rot90(image, turns))
    height, width = upright.shape[:2]
    if width > _MAX_WIDTH:
        size = (_MAX_WIDTH, round(height * _MAX_WIDTH / width))
        upright = cv2.resize(upright, size, interpolation=cv2.INTER_AREA)
    return cv2.convertScaleAbs(np.clip(upright, 0, 1), alpha=255)


def webp(image: Bytes, quality: int = 95) -> str:
    """Return an RGB picture as the data URI of a WebP file."""
    options = [cv2.IMWRITE_WEBP_QUALITY, quality]
    _, data = cv2.imencode(".webp", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)
    return "data:image/webp;base64," + base64.b64encode(data.tobytes()).decode()


def sprite(frames: Sequence[Bytes]) -> Bytes:
    """Stack the pictures of a loop on top of each other, as many as one WebP file holds."""
    return np.concatenate(frames[: _WEBP_SIDE // frames[0].shape[0]])
