"""Write networks for other runtimes: ONNX files and programs of `torch.export`."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import torch

from restore.data import Source
from restore.errors import UsageError
from restore.export.graph import describe, halve, quantise, to_proto, trace
from restore.export.verify import TOLERANCE, check, compare, pictures, quality
from restore.hyperframe import TIME_UNIT
from restore.models import Student
from restore.weights import find, load_model
from restore.weights.manifest import write_whole

FORMAT = "1"
"""Number of the layout of inputs and metadata."""
PRECISIONS = ("fp32", "fp16", "int8")


def export_onnx(
    name_or_path: str | Path,
    path: str | Path,
    *,
    precision: str = "fp16",
    calibration: Sequence[Source] = (),
) -> dict[str, float]:
    """Export the network of some weights.

    Batch, slots, height and width stay free; padding happens inside the graph. Networks that look
    at a hyperframe have the input "hyperframe", shape (B, T*8, H, W); single-frame ones "noisy",
    shape (B, 6, H, W): RGB and σ. The output is "clean", shape (B, 3, H, W). Networks that enlarge
    by s have the input "hyperframe_x" and s, slots and memory as `restore.memory` lays them out,
    and s times the height and width.

    Args:
        name_or_path: Name of known weights, or a safetensors file.
        path: File to write, ending in .onnx; appears only when complete and checked.
        precision: "fp32"; "fp16" stores the weights in 16 bits and computes with 32 (weights from
            a file of restore's are 16-bit numbers: nothing is lost); "int8" computes the inner
            convolutions in 8 bits, single-frame networks only.
        calibration: Pictures that tell the range of values in an 8-bit network; empty takes the
            built-in photographs.

    Returns:
        Largest difference from PyTorch for every checked size, as `check` gives it; for "int8"
        the dB lost instead, as `quality` gives them.

    Raises:
        UsageError: If the path, the precision or the network cannot be used so, or a package is
            missing.
        WeightsError: If the weights cannot be loaded.
        RestoreError: If the exported network answers differently.
    """
    path = Path(path)
    if path.suffix.lower() != ".onnx":
        raise UsageError(f"{path}: ONNX files end in .onnx")
    if precision not in PRECISIONS:
        raise UsageError(f"precision {precision} is unknown; choose {', '.join(PRECISIONS)}")
    model, entry = load_model(name_or_path)
    single = isinstance(model, Student)
    scale, margin = int(getattr(model, "scale", 1)), int(model.margin)  # type: ignore[arg-type]
    if precision == "int8" and not single:
        raise UsageError(f"{name_or_path}: 8 bits are for single-frame networks; use --fp16")
    proto = to_proto(model)
    if precision == "fp16":
        halve(proto)
    if precision == "int8":
        proto = quantise(proto, [noisy for _, noisy in pictures(calibration, range(12))])
    digest = hashlib.sha256(find(name_or_path).read_bytes()).hexdigest()
    described = {"name": entry.name, "precision": precision, "sha256": digest}
    describe(proto, described | _layout(single, scale, margin))
    content = proto.SerializeToString()
    found = quality(model, content, calibration) if precision == "int8" else check(model, content)
    write_whole(path, content)
    return found


def _layout(single: bool, scale: int, margin: int) -> dict[str, str]:
    """Return what a user of a file has to know about its input and output."""
    channels = "R, G, B, sigma R, G, B" if single else "R, G, B, time, confidence, sigma R, G, B"
    return {
        "kind": "single-frame" if single else "multi-frame",
        "channels": channels + ("" if single else f"; once a slot; time in {TIME_UNIT:g}"),
        "scale": str(scale),
        "multiple": "1",
        "margin": str(margin),
        "range": "RGB in [0, 1]",
        "sigma": "standard deviation in [0, 1]",
        "format": FORMAT,
    }


def export_program(name_or_path: str | Path, path: str | Path) -> dict[str, float]:
    """Export the network of some weights as a program of `torch.export`.

    Load it with `torch.export.load(path).module(check_guards=False)`: the guards speak of the
    memory layout that the traced size happened to have, and would refuse sizes that work.

    Args:
        name_or_path: Name of known weights, or a safetensors file.
        path: File to write, ending in .pt2.

    Returns:
        Largest difference from the network for every checked size.
    """
    path = Path(path)
    if path.suffix.lower() != ".pt2":
        raise UsageError(f"{path}: exported programs end in .pt2")
    model, _ = load_model(name_or_path)
    program = trace(model)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    loaded = torch.export.load(io.BytesIO(buffer.getvalue())).module(check_guards=False)
    found = compare(
        model, lambda batch: loaded(torch.from_numpy(batch)).detach().numpy(), TOLERANCE
    )
    write_whole(path, buffer.getvalue())
    return found
