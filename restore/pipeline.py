"""The streaming loop: from file to file, and from frames to frames.

Decoding, restoring and encoding overlap in bounded queues; memory depends on the window and the
size of a frame, never on the length of the file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from restore import __version__
from restore.conveyor import Conveyor, prefetch
from restore.engine import Engine
from restore.enlarging import load_task, origin, preset_for, substitution
from restore.errors import InputError, OutputError, UsageError
from restore.finish import finished
from restore.handover import Handover
from restore.io import Frame, VideoReader, to_rgb
from restore.io.output import Encoding
from restore.memory import enlarge
from restore.segments import LENGTH, Target, open_target
from restore.sequence import PRESETS, Preset, restore_shots, scale_of

Array = np.ndarray
Progress = Callable[[int, int | None], None]
"""Called with the frames done and the frames expected, or None where that is not known."""
Step = tuple[Frame, "Array | None", Handover]
"""A frame, what is to be added to it (None changes nothing), and what it leaves to the next."""

_NOT_SETTINGS = {"src", "dst", "overwrite", "resume", "segment", "progress"}
"""Arguments of `restore_video` that do not change a frame, or are compared elsewhere."""


@dataclass
class Summary:
    """What a run did."""

    source: str
    target: str
    frames: int = 0
    resumed: int = 0
    """Frames among them that an interrupted run had finished."""
    seconds: float = 0.0
    model: str = ""
    runtime: str = ""
    sigma: list[float] = field(default_factory=list)
    """Mean σ of each shot, 0-255 units."""
    damaged: int = 0
    notes: list[str] = field(default_factory=list)


def restore_video(  # noqa: D417  arguments that belong together are described together
    src: str | Path,
    dst: str | Path,
    *,
    scale: int = 1,
    denoise: bool = False,
    preset: str = "balanced",
    model: str | None = None,
    sigma: float | None = None,
    strength: float = 1.0,
    luma: float = 1.0,
    chroma: float = 1.0,
    start: Fraction | float | None = None,
    duration: Fraction | float | None = None,
    compare: bool = False,
    overwrite: bool = False,
    codec: str | None = None,
    crf: float | None = None,
    pix_fmt: str | None = None,
    encoder_options: Mapping[str, str] | None = None,
    device: str = "auto",
    runtime: str = "auto",
    tile: int | None = None,
    input_matrix: str | None = None,
    deinterlace: str = "auto",
    leave_out: Collection[str] = (),
    strict: bool = False,
    max_pixels: int | None = None,
    resume: bool = False,
    segment: int = LENGTH,
    progress: Progress | None = None,
) -> Summary:
    """Restore a video file and leave everything else in it as it is.

    The work is done in segments that lie in a hidden folder beside the target until all are there.
    An interrupted run leaves the finished ones; a `KeyboardInterrupt` carries a note that says so.

    Args:
        src: Video file, picture, image sequence, or "-" for y4m on standard input.
        dst: File to write; it appears only when complete. "-" is y4m on standard output.
        scale: Enlargement: 2, 3 or 4; 1 removes noise and keeps the size.
        denoise: Where the picture is enlarged, denoise it first, in the same pass.
        preset: "fast", "balanced" or "best"; `model`, a name or file, replaces its model.
        sigma: Noise level in [0, 1]; None measures it, shot by shot.
        strength: Factor on the change: 0 leaves the picture untouched (enlarged: bicubic), 1 is
            the model's answer;
            `luma` and `chroma` are further factors on their planes.
        start, duration: Seconds; None is the whole file.
        compare: Write the original on the left and the restored picture on the right.
        overwrite: Replace an existing file.
        codec, crf, pix_fmt, encoder_options: As `VideoWriter` takes them; None as the input.
        device, runtime, tile: As `load_engine` takes them.
        input_matrix: Colour matrix of the input, where the file does not say or says it wrong.
        deinterlace, leave_out, strict, max_pixels: As `VideoReader` takes them; where nothing is
            changed (strength 0), nothing is deinterlaced either.
        resume: Go on after the last finished segment of an interrupted run, if there was one; the
            file becomes the same, frame for frame, as without the interruption.
        segment: Frames of a segment, at most; from half of that on it ends at a cut.
        progress: Told after every frame.

    Raises:
        RestoreError: One of its kinds, naming the file, what is wrong and what to do.
    """
    # Also those to be added in future: a segment must never be taken over into another film.
    settings = {name: value for name, value in locals().items() if name not in _NOT_SETTINGS}
    settings["version"] = __version__
    chosen = preset_for(preset, scale)
    _check(sigma, strength, luma, chroma, segment=segment)
    began, summary = time.monotonic(), Summary(str(src), str(dst))
    factors, engine = (strength * luma, strength * chroma), None
    reading: Any = dict(leave_out=leave_out, strict=strict, max_pixels=max_pixels)
    reading |= dict(input_matrix=input_matrix, deinterlace=deinterlace if any(factors) else "off")
    with VideoReader(src, start=_exact(start), duration=_exact(duration), **reading) as reader:
        if any(factors):
            names = (model or chosen.model, PRESETS[preset].model if denoise else None)
            engine = load_task(*names, scale, runtime=runtime, device=device, tile=tile)
            settings |= origin(engine, *names)
            summary.model, summary.runtime = engine.name, engine.runtime
        width = reader.info.width * scale // 2 * 2 if compare else 0
        size = (2 * width or reader.info.width * scale, reader.info.height * scale)
        encoding = Encoding(codec, crf, pix_fmt, tuple((encoder_options or {}).items()), size)
        again: Any = dict(length=segment, resume=resume, overwrite=overwrite)
        target = open_target(dst, reader, encoding, settings, **again)
        steps = restored_frames(reader, engine, chosen, sigma, target.handover, target.done)
        finish = partial(finished, factors=factors, width=width, scale=scale)
        _write(steps, target, reader, finish, summary, progress)
        summary.notes = substitution(model, summary.model, scale) + reader.notes + target.notes
        summary.damaged = reader.damaged
    summary.seconds = time.monotonic() - began
    return summary


def _write(
    steps: Generator[Step],
    target: Target,
    reader: VideoReader,
    finish: Callable[[Frame, Array | None], Frame],
    summary: Summary,
    progress: Progress | None,
) -> None:
    """Add the residuals and encode."""
    summary.frames = summary.resumed = target.done
    handover = target.handover
    with target:
        # The threads end before the files that they use are closed.
        with closing(steps), Conveyor(target.write) as sink:
            for frame, residual, handover in () if target.complete else steps:
                sink.put((finish(frame, residual), handover))
                summary.frames += 1
                if progress is not None:
                    progress(summary.frames, reader.info.frame_count)
            sink.finish()
        if summary.frames == 0:
            raise InputError(f"{summary.source}: no frame could be decoded; is it complete?")
        target.close()
        if target.frames != summary.frames:
            raise OutputError(
                f"{summary.target}: {target.frames} frames were written of {summary.frames} read; "
                "please report this"
            )
    summary.sigma = [round(255 * level, 2) for level in handover.levels]


def restored_frames(
    frames: Iterable[Frame],
    engine: Engine | None,
    preset: Preset,
    sigma: float | None,
    handover: Handover,
    done: int = 0,
) -> Generator[Step]:
    """Yield every frame with its residual and what it leaves to the next.

    Args:
        frames: All decoded frames.
        engine: The model; None leaves all frames as they are.
        preset: How much is spent on a frame.
        sigma: Noise level in [0, 1]; None measures it.
        handover: Where to go on.
        done: Number of leading frames that were restored before.
    """
    wanted = islice(frames, done - handover.behind, None)
    if engine is None:
        with closing(prefetch(wanted)) as decoded:
            for frame in decoded:
                yield frame, None, handover
        return
    preset = replace(preset, slots=1, passes=1) if engine.single else preset
    with closing(prefetch((frame, to_rgb(frame)) for frame in wanted)) as pairs:
        restored = restore_shots(pairs, lambda item: item[1], engine, preset, sigma, handover)
        for (frame, image), clean, after in restored:
            yield frame, clean - enlarge(image, scale_of(engine)), after


def restore_frames(
    frames: Iterable[Array],
    *,
    sigma: float | None = None,
    scale: int = 1,
    preset: str = "balanced",
    model: str | None = None,
    device: str = "auto",
    runtime: str = "auto",
    tile: int | None = None,
) -> Iterator[Array]:
    """Restore frames as they come.

    Args:
        frames: Pictures of shape (H, W, 3), float RGB in [0, 1].
        sigma: Noise level in [0, 1]; None measures it, shot by shot.
        scale: Enlargement: 2, 3 or 4; 1 removes noise and keeps the size.
        preset: "fast", "balanced" or "best".
        model: Name of known weights or a file, instead of the preset's.
        device: "auto", "cpu", "cuda", …
        runtime: "auto", "onnx", "openvino" or "torch".
        tile: Side of the tiles; None takes whole pictures where memory allows.

    Yields:
        As many pictures, float32, in the same order, range [0, 1], enlarged by the scale.

    Raises:
        RestoreError: If options or weights cannot be used.
        ValueError: If a frame has another shape.
    """
    _check(sigma)
    chosen = preset_for(preset, scale)
    engine = load_task(
        model or chosen.model, None, scale, runtime=runtime, device=device, tile=tile
    )
    chosen = replace(chosen, slots=1, passes=1) if engine.single else chosen
    pictures = (_picture(frame) for frame in frames)
    for _, clean, _ in restore_shots(pictures, _itself, engine, chosen, sigma):
        yield np.clip(clean, 0, 1)


def _check(sigma: float | None, *factors: float, segment: int = LENGTH) -> None:
    if sigma is not None and not 0 <= sigma <= 1:
        raise UsageError(f"sigma must lie in [0, 1] (0 to 255 on the command line), got {sigma}")
    if segment < 1:
        raise UsageError(f"a segment must have a frame or more, not {segment}")
    if any(not 0 <= factor <= 4 for factor in factors):
        raise UsageError(f"strength, luma and chroma must lie in [0, 4], got {factors}")


def _exact(seconds: Fraction | float | None) -> Fraction | None:
    return None if seconds is None else Fraction(seconds).limit_denominator(10**6)


def _picture(frame: Array) -> Array:
    image = np.ascontiguousarray(frame, np.float32)
    if image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(f"a frame must be (H, W, 3), got {image.shape}")
    return image


def _itself(image: Array) -> Array:
    return image
