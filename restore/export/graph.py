"""Networks as ONNX graphs: traced, stored in half the bits, or computing in 8 bits."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from restore.engine import input_of
from restore.errors import UsageError
from restore.hyperframe import SLOT, TIME_UNIT
from restore.memory import memory_slots
from restore.models import Student

if TYPE_CHECKING:
    import onnx

Array = np.ndarray

OPSET = 18
SMALL = 64
"""Weights with fewer values stay float32 in a file of half the size."""
TRUNK = {"Conv", "Add", "DepthToSpace"}
"""What yields the values that a trunk adds."""
KEPT = ("enter.", "answer.")
"""First and last convolutions: they keep their precision in an 8-bit network."""


def to_proto(model: nn.Module) -> onnx.ModelProto:
    """Trace a network into an ONNX graph.

    Raises:
        UsageError: If the packages onnx and onnxscript are not installed.
    """
    try:
        import onnxscript  # noqa: F401  the exporter of torch needs it
    except ImportError:
        raise UsageError(
            "exporting needs onnx and onnxscript: pip install onnx onnxscript"
        ) from None
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            trace(model),
            dynamo=True,
            opset_version=OPSET,
            input_names=[input_of(model)],
            output_names=["clean"],
            verbose=False,
        )
    assert program is not None
    proto = program.model_proto
    # The exporter writes where each node comes from: source lines, and paths of this machine.
    graph = proto.graph
    for part in (graph, *graph.node, *graph.initializer, *graph.value_info):
        part.doc_string = ""
        del part.metadata_props[:]
    for part in (*graph.input, *graph.output):
        del part.metadata_props[:]
    return proto


def trace(model: nn.Module) -> torch.export.ExportedProgram:
    """Trace a network, every size of its input left free."""
    free = torch.export.Dim.DYNAMIC
    axes: dict[int, Any] = {0: free, 2: free, 3: free}
    if not isinstance(model, Student):
        memory = memory_slots(int(getattr(model, "scale", 1)))
        axes[1] = SLOT * torch.export.Dim("slots", min=1 + memory, max=16 + memory)
    inputs = example(model, 5, 37, 51, batch=2)
    # Strict: the other way of tracing takes len() of a tensor for a constant.
    return torch.export.export(model.eval(), (inputs,), dynamic_shapes=(axes,), strict=True)


def halve(proto: onnx.ModelProto) -> None:
    """Store large weights in 16 bits, each followed by a cast that runtimes fold when loading."""
    from onnx import TensorProto, helper, numpy_helper

    casts = []
    for tensor in proto.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.size < SMALL:
            continue
        if (values.astype(np.float16) != values).any():
            continue  # no weight but a constant, such as a kernel, that is not rounded in files
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}.half"))
        casts.append(helper.make_node("Cast", [f"{name}.half"], [name], to=TensorProto.FLOAT))
    for cast in reversed(casts):
        proto.graph.node.insert(0, cast)


def quantise(proto: onnx.ModelProto, pictures: Sequence[Array]) -> onnx.ModelProto:
    """Turn the inner convolutions into 8-bit ones, static, each channel with its own scale.

    Args:
        proto: The graph of a single-frame network.
        pictures: Noisy pictures with their σ, each of shape (1, 6, H, W).

    Returns:
        A new graph, with pairs of QuantizeLinear and DequantizeLinear.
    """
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    batches = iter([{"noisy": picture} for picture in pictures])

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> dict[str, Array] | None:
            return next(batches, None)

    with tempfile.TemporaryDirectory() as folder:
        source, ready, target = (Path(folder) / f"{i}.onnx" for i in range(3))
        source.write_bytes(proto.SerializeToString())
        quant_pre_process(str(source), str(ready), skip_symbolic_shape=True)
        import onnx

        nodes = onnx.load(str(ready)).graph.node
        made_by = {output: node.op_type for node in nodes for output in node.output}
        kept = [
            node.name
            for node in nodes
            if (node.op_type == "Conv" and node.input[1].startswith(KEPT))
            # Only the trunk's sums: others add variances, or products up to the picture itself.
            or (node.op_type == "Add" and not TRUNK.issuperset(map(made_by.get, node.input)))
        ]
        quantization.quantize_static(
            str(ready),
            str(target),
            Reader(),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
            # With the sums, values stay in 8 bits from one convolution to the next.
            op_types_to_quantize=["Conv", "Relu", "Add"],
            nodes_to_exclude=kept,
            # Sums of a 16-bit instruction overflow on CPUs without VNNI unless weights have 7 bits.
            reduce_range=True,
        )
        return onnx.load(str(target))


def describe(proto: onnx.ModelProto, metadata: Mapping[str, str]) -> None:
    """Write what a user of the file has to know into it."""
    del proto.metadata_props[:]
    for key, value in metadata.items():
        prop = proto.metadata_props.add()
        prop.key, prop.value = key, value


def example(model: nn.Module, slots: int, height: int, width: int, batch: int = 1) -> Tensor:
    """Return random input of a network, always the same; single-frame ones ignore `slots`."""
    generator = torch.Generator().manual_seed(slots)
    behind = memory_slots(int(getattr(model, "scale", 1)))
    x = torch.rand(batch, slots + behind, SLOT, height, width, generator=generator)
    offsets = torch.arange(slots) - slots // 2
    x[:, :slots, 3] = (offsets / TIME_UNIT)[:, None, None]
    x[:, :, 5:8] *= 0.2
    if isinstance(model, Student):
        return torch.cat((x[:, 0, :3], x[:, 0, 5:]), 1)
    return x.flatten(1, 2)
