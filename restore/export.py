"""Export networks to ONNX, with what is needed to use them written inside, and check the result."""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from restore.errors import RestoreError, UsageError, WeightsError
from restore.hyperframe import SLOT, TIME_UNIT
from restore.weights import find, load_model
from restore.weights.manifest import write_whole

if TYPE_CHECKING:
    import onnx

OPSET = 18
FORMAT = "1"
"""Number of the layout of inputs and metadata."""
SMALL = 64
"""Weights with fewer values stay float32 in a file of half the size."""
CHECKED = ((1, 16, 16), (3, 37, 51), (5, 64, 40))
"""Slots, height and width that an export is compared on: one odd, one small."""


def export_onnx(
    name_or_path: str | Path, path: str | Path, *, half: bool = True
) -> dict[str, float]:
    """Export the network of some weights.

    Batch, slots, height and width stay free; padding happens inside the graph.

    Args:
        name_or_path: Name of known weights, or a safetensors file.
        path: File to write, ending in .onnx; appears only when complete and checked.
        half: Store the weights in 16 bits; they are computed with in 32. Weights that come from
            a file of restore's are 16-bit numbers, so that nothing is lost.

    Returns:
        Largest difference from PyTorch for every checked size, as `check` gives it.

    Raises:
        UsageError: If the path does not end in .onnx, or the package onnx is missing.
        WeightsError: If the weights cannot be loaded.
        RestoreError: If the exported network answers differently.
    """
    path = Path(path)
    if path.suffix.lower() != ".onnx":
        raise UsageError(f"{path}: ONNX files end in .onnx")
    model, entry = load_model(name_or_path)
    origin = hashlib.sha256(find(name_or_path).read_bytes()).hexdigest()
    proto = to_proto(model)
    if half:
        _halve(proto)
    metadata = {
        "name": entry.name,
        "kind": "multi-frame",
        "scale": "1",
        "multiple": str(getattr(model, "multiple", 1)),
        "range": "RGB in [0, 1]",
        "sigma": "standard deviation in [0, 1]",
        "slot": f"{SLOT} channels: R, G, B, time / {TIME_UNIT:g}, confidence, sigma R, G, B",
        "format": FORMAT,
        "sha256": origin,
    }
    _describe(proto, metadata)
    content = proto.SerializeToString()
    differences = check(model, content)
    write_whole(path, content)
    return differences


def to_proto(model: nn.Module) -> onnx.ModelProto:
    """Trace a network that takes hyperframes into an ONNX graph.

    Raises:
        UsageError: If the packages onnx and onnxscript are not installed.
    """
    try:
        import onnxscript  # noqa: F401  the exporter of torch needs it
    except ImportError:
        raise UsageError(
            "exporting needs onnx and onnxscript: pip install onnx onnxscript"
        ) from None
    free = torch.export.Dim.DYNAMIC
    slots = torch.export.Dim("slots", min=1, max=16)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            model.eval(),
            (_example(5, 48, 64, batch=2),),
            dynamo=True,
            opset_version=OPSET,
            input_names=["hyperframe"],
            output_names=["clean"],
            dynamic_shapes={"hyperframe": {0: free, 1: SLOT * slots, 2: free, 3: free}},
            verbose=False,
        )
    assert program is not None
    return program.model_proto


def check(model: nn.Module, content: bytes, *, tolerance: float = 1e-4) -> dict[str, float]:
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
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    differences = {}
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        for slots, height, width in CHECKED:
            batch = _example(slots, height, width)
            with torch.inference_mode():
                expected = model(batch).numpy()
            (got,) = session.run(None, {"hyperframe": batch.numpy()})
            worst = float(np.abs(got - expected).max()) if got.shape == expected.shape else np.inf
            differences[f"{slots}x{height}x{width}"] = worst
    except (RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise WeightsError(f"the exported network does not run: {reason}") from None
    for size, worst in differences.items():
        if not worst <= tolerance:
            raise RestoreError(f"the exported network is off by {worst:.2g} at {size}")
    return differences


def _example(slots: int, height: int, width: int, batch: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(slots)
    x = torch.rand(batch, slots, SLOT, height, width, generator=generator)
    offsets = torch.arange(slots) - slots // 2
    x[:, :, 3] = (offsets / TIME_UNIT)[:, None, None]
    x[:, :, 5:8] *= 0.2
    return x.flatten(1, 2)


def _halve(proto: onnx.ModelProto) -> None:
    """Store large weights in 16 bits, each followed by a cast that runtimes fold when loading."""
    from onnx import TensorProto, helper, numpy_helper

    casts = []
    for tensor in proto.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.size < SMALL:
            continue
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}.half"))
        casts.append(helper.make_node("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT))
    for cast in reversed(casts):
        proto.graph.node.insert(0, cast)


def _describe(proto: onnx.ModelProto, metadata: Mapping[str, Any]) -> None:
    del proto.metadata_props[:]
    for key, value in metadata.items():
        prop = proto.metadata_props.add()
        prop.key, prop.value = key, str(value)
