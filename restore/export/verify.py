"""Compare exported networks with PyTorch: the answer, the quality, the time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch import nn

from restore.analyse import noise_map
from restore.data import AwgnRecipe, ClipDataset, Consecutive, Recipe, Source, builtin_source
from restore.errors import RestoreError, WeightsError
from restore.export.graph import example
from restore.metrics.fidelity import psnr

Array = np.ndarray

CHECKED = ((1, 16, 16), (3, 37, 51), (5, 64, 40))
"""Slots, height and width that an export is compared on: one odd, one small."""
TOLERANCE = 1e-4
"""Largest difference allowed; a code value is 4e-3."""
LOST = 0.2
"""dB that an 8-bit network may lose."""


def check(model: nn.Module, content: bytes, *, tolerance: float = TOLERANCE) -> dict[str, float]:
    """Compare an exported network with PyTorch on several sizes.

    Args:
        model: The network.
        content: The ONNX file.
        tolerance: Largest difference allowed; a code value is 4e-3.

    Returns:
        "TxHxW" -> largest absolute difference.

    Raises:
        RestoreError: If a difference is larger, naming the size.
        WeightsError: If ONNX Runtime cannot run the file.
    """
    return compare(model, runner(content), tolerance)


def compare(model: nn.Module, run: Callable[[Array], Array], tolerance: float) -> dict[str, float]:
    """Compare a function with a network on several sizes; see `check`."""
    differences = {}
    for slots, height, width in CHECKED:
        batch = example(model, slots, height, width)
        with torch.inference_mode():
            expected = model(batch).numpy()
        size = f"{slots}x{height}x{width}"
        try:
            got = run(batch.numpy())
        except Exception as error:
            reason = str(error).splitlines()[0]
            raise WeightsError(f"the exported network does not run at {size}: {reason}") from None
        worst = float(np.abs(got - expected).max()) if got.shape == expected.shape else np.inf
        if not worst <= tolerance:
            raise RestoreError(f"the exported network is off by {worst:.2g} at {size}")
        differences[size] = worst
    return differences


def quality(model: nn.Module, content: bytes, sources: Sequence[Source] = ()) -> dict[str, float]:
    """Compare the PSNR of an exported network with that of PyTorch on noisy pictures.

    Returns:
        "PSNR PyTorch", "PSNR exported" and "dB lost".

    Raises:
        RestoreError: If more is lost than an 8-bit network may lose.
    """
    run, values = runner(content), []
    for clean, noisy in pictures(sources, range(12, 18)):
        with torch.inference_mode():
            expected = model(torch.from_numpy(noisy)).numpy()
        values.append(
            [psnr(clean, np.clip(x[0].transpose(1, 2, 0), 0, 1)) for x in (expected, run(noisy))]
        )
    before, after = (float(x) for x in np.mean(values, axis=0))
    if before - after > LOST:
        raise RestoreError(f"8 bits cost {before - after:.2f} dB, more than {LOST}; use --fp16")
    return {"PSNR PyTorch": before, "PSNR exported": after, "dB lost": before - after}


def latency(
    model: nn.Module, content: bytes, *, threads: int = 1, repeats: int = 3
) -> dict[str, float]:
    """Measure seconds a frame, best of some, of PyTorch and of ONNX Runtime, in turn.

    Args:
        model: The network.
        content: The ONNX file.
        threads: Threads of either.
        repeats: Measurements of each.

    Returns:
        "RUNTIME WIDTHxHEIGHT" -> seconds; multi-frame networks with T = 5.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    run = runner(content, threads)
    best: dict[str, float] = {}
    for width, height in ((854, 480), (1920, 1080)):
        batch = example(model, 5, height, width)
        kinds: dict[str, Callable[[], object]] = {
            "PyTorch": partial(model, batch),
            "ONNX Runtime": partial(run, batch.numpy()),
        }
        for _ in range(repeats):
            for kind, call in kinds.items():
                began = time.perf_counter()
                with torch.inference_mode():
                    call()
                key = f"{kind} {width}x{height}"
                best[key] = min(best.get(key, np.inf), time.perf_counter() - began)
    torch.set_num_threads(before)
    return best


def runner(content: bytes, threads: int = 1) -> Callable[[Array], Array]:
    """Return a function that runs an exported network in ONNX Runtime on the CPU.

    Raises:
        WeightsError: If ONNX Runtime cannot load it.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise WeightsError(f"the exported network does not load: {reason}") from None
    name = session.get_inputs()[0].name
    return lambda batch: session.run(None, {name: batch})[0]


def pictures(sources: Sequence[Source], numbers: Iterable[int]) -> Iterator[tuple[Array, Array]]:
    """Yield clean pictures (H, W, 3) under white noise, and what a single-frame network sees.

    Args:
        sources: Where they come from; empty takes the built-in photographs.
        numbers: Which ones; the same number gives the same picture.
    """
    recipe: Recipe = AwgnRecipe()  # type: ignore[assignment]  # frozen is as good
    dataset = ClipDataset(sources or [builtin_source()], Consecutive(), recipe)
    for number in numbers:
        sample = dataset.sample(number, 0, frames=1)
        sigma = noise_map(sample.curve, sample.noisy[0])
        seen = np.concatenate((sample.noisy[0], sigma), 2).transpose(2, 0, 1)
        yield sample.clean[0], np.ascontiguousarray(seen[None])
