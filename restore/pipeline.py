"""The streaming loop: from file to file, and from frames to frames.

Decoding, restoring and encoding overlap in bounded queues; memory depends on the window and the
size of a frame, never on the length of the file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from restore.conveyor import Conveyor, prefetch
from restore.engine import Engine, load_engine
from restore.errors import InputError, OutputError, UsageError
from restore.io import Frame, VideoReader, VideoWriter, add_residual, to_rgb
from restore.sequence import PRESETS, Preset, restore_shots

if TYPE_CHECKING:
    from torch import Tensor

Array = np.ndarray
Item = TypeVar("Item")
Progress = Callable[[int, int | None], None]
"""Called with the frames done and the frames expected, or None where that is not known."""


@dataclass
class Summary:
    """What a run did."""

    source: str
    target: str
    frames: int = 0
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
    progress: Progress | None = None,
) -> Summary:
    """Restore a video file and leave everything else in it as it is.

    Args:
        src: Video file, picture, or image sequence.
        dst: File to write; it appears only when complete.
        preset: "fast", "balanced" or "best"; `model`, a name or file, replaces its model.
        sigma: Noise level in [0, 1]; None measures it, shot by shot.
        strength: Factor on the change: 0 leaves the picture untouched, 1 is the model's answer;
            `luma` and `chroma` are further factors on their planes.
        start, duration: Seconds; None is the whole file.
        compare: Write the original on the left and the restored picture on the right.
        overwrite: Replace an existing file.
        codec, crf, pix_fmt, encoder_options: As `VideoWriter` takes them; None as the input.
        device, runtime, tile: As `load_engine` takes them.
        input_matrix: Colour matrix of the input, where the file does not say or says it wrong.
        progress: Told after every frame.

    Raises:
        RestoreError: One of its kinds, naming the file, what is wrong and what to do.
    """
    _check(preset, sigma, strength, luma, chroma)
    began = time.monotonic()
    summary = Summary(str(src), str(dst))
    with VideoReader(
        src, start=_exact(start), duration=_exact(duration), input_matrix=input_matrix
    ) as reader:
        factors, engine = (strength * luma, strength * chroma), None
        if any(factors):
            name = model or PRESETS[preset].model
            engine = load_engine(name, runtime=runtime, device=device, tile=tile)
            summary.model, summary.runtime = engine.name, engine.runtime
        width = reader.info.width // 2 * 2 if compare else 0
        encoding: Any = dict(codec=codec, crf=crf, pix_fmt=pix_fmt, options=encoder_options)
        size = (2 * width, reader.info.height) if compare else None
        writer = VideoWriter(dst, reader, **encoding, size=size, overwrite=overwrite)
        pairs = restored_frames(reader, engine, PRESETS[preset], sigma, summary.sigma)
        _write(pairs, writer, factors, width, summary, progress)
        summary.notes = [*reader.notes, *writer.notes]
        summary.damaged = reader.damaged
    summary.seconds = time.monotonic() - began
    return summary


def _write(
    pairs: Iterable[tuple[Frame, Array | None]],
    writer: VideoWriter,
    factors: tuple[float, float],
    width: int,
    summary: Summary,
    progress: Progress | None,
) -> None:
    """Add the residuals and encode; a width above 0 puts the original beside the result."""
    expected = writer.source.info.frame_count
    with writer, Conveyor(writer.write) as sink:
        for done, (frame, residual) in enumerate(pairs, 1):
            out = frame
            if residual is not None:
                out = add_residual(frame, residual, luma=factors[0], chroma=factors[1])
            sink.put(beside(frame, out, width) if width else out)
            summary.frames = done
            if progress is not None:
                progress(done, expected)
        sink.finish()
        if summary.frames == 0:
            raise InputError(f"{summary.source}: no frame could be decoded; is it complete?")
        if writer.frames != summary.frames:
            raise OutputError(
                f"{summary.target}: {writer.frames} frames were written of {summary.frames} read; "
                "please report this"
            )


def restored_frames(
    frames: Iterable[Frame],
    engine: Engine | None,
    preset: Preset,
    sigma: float | None,
    levels: list[float],
) -> Iterator[tuple[Frame, Array | None]]:
    """Yield every frame with its residual, what is to be added to it; None changes nothing.

    Args:
        frames: Decoded frames.
        engine: The model; None leaves all frames as they are.
        preset: How much is spent on a frame.
        sigma: Noise level in [0, 1]; None measures it.
        levels: Takes the mean σ of each shot.
    """
    if engine is None:
        for frame in prefetch(frames):
            yield frame, None
        return
    decoded = prefetch((frame, to_rgb(frame)) for frame in frames)
    restored = restore_shots(decoded, lambda item: item[1], engine, preset, sigma, levels)
    for (frame, image), clean in restored:
        yield frame, clean - image


def restore_frames(
    frames: Iterable[Array],
    *,
    sigma: float | None = None,
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
        preset: "fast", "balanced" or "best".
        model: Name of known weights or a file, instead of the preset's.
        device: "auto", "cpu", "cuda", …
        runtime: "auto", "onnx", "openvino" or "torch".
        tile: Side of the tiles; None takes whole pictures where memory allows.

    Yields:
        As many pictures, float32, in the same order, range [0, 1].

    Raises:
        RestoreError: If options or weights cannot be used.
        ValueError: If a frame has another shape.
    """
    _check(preset, sigma)
    chosen = PRESETS[preset]
    engine = load_engine(model or chosen.model, runtime=runtime, device=device, tile=tile)
    pictures = (_picture(frame) for frame in frames)
    for _, clean in restore_shots(pictures, _itself, engine, chosen, sigma, []):
        yield np.clip(clean, 0, 1)


def denoise(frames: Any, sigma: float | None = None, **options: Any) -> Any:
    """Denoise a clip held in memory.

    Args:
        frames: Array (T, H, W, 3) or tensor (T, 3, H, W), float RGB in [0, 1].
        sigma: Noise level in [0, 1]; None measures it.
        **options: Those of `restore_frames`.

    Returns:
        The restored clip: same kind, shape and type.

    Raises:
        ValueError: If the shape is neither of the two.
        RestoreError: If options or weights cannot be used.
    """
    if isinstance(frames, np.ndarray):
        if frames.ndim != 4 or frames.shape[-1] != 3:
            raise ValueError(f"frames must be (T, H, W, 3), got {frames.shape}")
        restored = list(restore_frames(frames, sigma=sigma, **options))
        return np.stack(restored).astype(frames.dtype) if restored else frames.copy()
    return _denoise_tensor(frames, sigma, options)


def _denoise_tensor(frames: Tensor, sigma: float | None, options: dict[str, Any]) -> Tensor:
    import torch

    if frames.ndim != 4 or frames.shape[1] != 3:
        raise ValueError(f"frames must be (T, 3, H, W), got {tuple(frames.shape)}")
    pictures = frames.detach().permute(0, 2, 3, 1).float().cpu().numpy()
    restored = denoise(np.ascontiguousarray(pictures), sigma, **options)
    return torch.from_numpy(restored).permute(0, 3, 1, 2).to(frames).contiguous()


def beside(original: Frame, restored: Frame, width: int) -> Frame:
    """Return a frame of twice the width: the original on the left, the restored on the right."""

    def join(a: Array, b: Array) -> Array:
        columns = a.shape[1] if a.shape[1] < original.width else width
        columns = min(columns, a.shape[1] * width // original.width or 1)
        return np.concatenate((a[:, :columns], b[:, :columns]), axis=1)

    planes = tuple(map(join, original.planes, restored.planes))
    alpha = None if original.alpha is None else join(original.alpha, original.alpha)
    return replace(original, planes=planes, alpha=alpha)


def _check(preset: str, sigma: float | None, *factors: float) -> None:
    if preset not in PRESETS:
        raise UsageError(f'preset "{preset}" is unknown; choose one of {", ".join(PRESETS)}')
    if sigma is not None and not 0 <= sigma <= 1:
        raise UsageError(f"sigma must lie in [0, 1] (0 to 255 on the command line), got {sigma}")
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
