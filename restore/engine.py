"""Run a model on a hyperframe: ONNX Runtime, OpenVINO or PyTorch, whole or in tiles."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from restore.errors import RestoreError, UsageError, WeightsError
from restore.hyperframe import SLOT, reference_index
from restore.tiling import run_tiled
from restore.weights import find, load_model
from restore.weights.manifest import Manifest, is_path

if TYPE_CHECKING:
    from torch import nn

Array = np.ndarray
Run = Callable[[Array], Array]
"""A batch (1, C, H, W) in, a batch (1, 3, scale * H, scale * W) out; float32."""

RUNTIMES = ("auto", "onnx", "openvino", "torch")
PACKAGES = {"onnx": "onnxruntime", "openvino": "openvino", "torch": "torch"}
MARGIN = 160
"""Overlap of tiles for a file that does not say how far its model sees: the largest of ours."""
MULTIPLE = 8
WHOLE = 2_500_000
"""Pixels up to which a picture is restored in one piece: full HD takes about 1.5 GB."""
WHOLE_ENLARGED = 4_000_000
"""The same for a picture that is enlarged, counted when it is: full HD from a half of it."""
SMALLEST_TILE = 64
INPUT = "hyperframe"
"""Name of the input of exported models; those that enlarge add "_x" and the scale."""
SINGLE_INPUT = "noisy"
"""Name of the input of exported models that look at one frame only."""


class Engine:
    """A model, ready to run: call it with a hyperframe (T*8, H, W), get the picture (3, H, W).

    Pictures too large for the memory are restored in tiles that overlap by more than the model
    sees, so that the result is the same. When memory runs out all the same, the tile is halved and
    the same picture tried again; no frame is ever left out.
    """

    def __init__(
        self,
        run: Run,
        *,
        name: str,
        runtime: str,
        tile: int | None = None,
        scale: int = 1,
        single: bool = False,
        margin: int = MARGIN,
    ) -> None:
        """Wrap a function that runs a batch.

        Args:
            run: The model.
            name: What to call it in messages.
            runtime: "onnx", "openvino" or "torch", for the summary.
            tile: Side of a tile; None chooses by the size of the picture.
            scale: Enlargement by the model.
            single: The model takes one picture and its σ, shape (1, 6, H, W), not a hyperframe;
                neighbours need not be aligned for it.
            margin: Pixels to each side that the model sees.
        """
        self.run, self.name, self.runtime, self.tile = run, name, runtime, tile
        self.scale, self.single, self.margin = scale, single, margin

    def __call__(self, hyperframe: Array) -> Array:
        """Restore one picture.

        Raises:
            RestoreError: If the memory is too small even for the smallest tile, or the model's
                answer is not finite.
        """
        if self.single:
            hyperframe = reference_of(hyperframe)
        pixels = hyperframe.shape[-2] * hyperframe.shape[-1]
        tile = self.tile
        if tile is None and self.scale == 1 and pixels > WHOLE:
            tile = 1024
        elif tile is None and self.scale > 1 and pixels * self.scale**2 > WHOLE_ENLARGED:
            tile = 1024 // self.scale
        while True:
            try:
                clean = self._whole(hyperframe) if tile is None else self._tiled(hyperframe, tile)
                break
            except Exception as error:
                if not _out_of_memory(error):
                    raise
                tile = (tile or max(hyperframe.shape[-2:])) // 2
                if tile < SMALLEST_TILE:
                    raise RestoreError(
                        f"{self.name}: not enough memory even for tiles of {2 * tile} pixels; "
                        "close other programs"
                    ) from None
                self.tile = tile
        if not np.isfinite(clean.sum()):
            raise RestoreError(
                f"{self.name}: the model's answer is not finite; try --runtime torch --device cpu"
            )
        return clean

    def _whole(self, hyperframe: Array) -> Array:
        return self.run(hyperframe[None])[0]

    def _tiled(self, hyperframe: Array, tile: int) -> Array:
        steps = {"tile": tile, "margin": self.margin, "multiple": MULTIPLE, "scale": self.scale}
        return run_tiled(self._whole, hyperframe, **steps)


def load_engine(
    name_or_path: str | Path,
    *,
    runtime: str = "auto",
    device: str = "auto",
    threads: int = 0,
    tile: int | None = None,
) -> Engine:
    """Load a model by name or from a file.

    Args:
        name_or_path: Name of known weights, or a .onnx or .safetensors file.
        runtime: "onnx", "openvino", "torch", or "auto": PyTorch on a GPU; on the CPU the fastest
            that is installed and that there is a file for.
        device: "cpu", "cuda", "cuda:1", …, or "auto": a GPU if there is one.
        threads: CPU threads of the model; 0 takes all cores.
        tile: Side of a tile, see `Engine`.

    Raises:
        UsageError: If the runtime is unknown or not installed, or there is no such device.
        WeightsError: If the weights are unknown or damaged.
    """
    if runtime not in RUNTIMES:
        raise UsageError(f"runtime {runtime} is unknown; choose one of {', '.join(RUNTIMES)}")
    if tile is not None and tile < SMALLEST_TILE:
        raise UsageError(f"a tile of {tile} pixels is too small; take {SMALLEST_TILE} or more")
    if runtime != "auto" and importlib.util.find_spec(PACKAGES[runtime]) is None:
        raise UsageError(f"{PACKAGES[runtime]} is not installed: pip install {PACKAGES[runtime]}")
    device = _device(device, runtime)
    kind = _choose(name_or_path, runtime, device)
    name = Path(name_or_path).stem if is_path(name_or_path) else str(name_or_path)
    if kind == "torch":
        run, takes, margin = _torch(name_or_path, device, threads)
    else:
        path = find(name_or_path, ".onnx")
        run, takes, margin = (_onnx if kind == "onnx" else _openvino)(path, threads)
    return Engine(
        run,
        name=name,
        runtime=kind,
        tile=tile,
        scale=scale_of_input(takes),
        single=takes == SINGLE_INPUT,
        margin=margin,
    )


def _device(device: str, runtime: str) -> str:
    if device == "auto":
        # Looking for the driver first spares CPU machines the second that importing torch takes.
        if runtime in ("auto", "torch") and Path("/proc/driver/nvidia").exists():
            import torch

            return "cuda" if torch.cuda.is_available() else "cpu"
        return "cpu"
    if device != "cpu" and runtime in ("onnx", "openvino"):
        raise UsageError(f"--runtime {runtime} runs on the CPU; use --runtime torch for {device}")
    return device


def _choose(name_or_path: str | Path, runtime: str, device: str) -> str:
    if runtime != "auto":
        return runtime
    suffix = Path(name_or_path).suffix.lower() if is_path(name_or_path) else ""
    if suffix == ".safetensors" or device != "cpu":
        return "torch"
    if not suffix:
        entry = Manifest.read().entries.get(str(name_or_path))
        if entry is None or f"{entry.name}.onnx" not in entry.files:
            return "torch"
    for kind in ("onnx", "openvino"):
        if importlib.util.find_spec(PACKAGES[kind]) is not None:
            return kind
    if suffix:
        raise UsageError(f"{name_or_path}: running it needs ONNX Runtime: pip install onnxruntime")
    return "torch"


def reference_of(hyperframe: Array) -> Array:
    """Take the reference and its σ, shape (6, H, W), out of a hyperframe (T*8, H, W)."""
    slots = hyperframe.reshape(-1, SLOT, *hyperframe.shape[-2:])
    slot = slots[reference_index(slots)]
    return np.concatenate((slot[:3], slot[5:]))


def scale_of_input(name: str) -> int:
    """Return the enlargement that the name of an exported model's input tells."""
    factor = name.removeprefix(f"{INPUT}_x")
    return int(factor) if factor.isdecimal() else 1


def input_of(model: nn.Module) -> str:
    """Return the name of a network's input, by which a file tells what it takes."""
    from restore.models import Student

    if isinstance(model, Student):
        return SINGLE_INPUT
    scale = int(getattr(model, "scale", 1))
    return INPUT if scale == 1 else f"{INPUT}_x{scale}"


Loaded = tuple[Run, str, int]
"""A model that runs, the name of its input, and the pixels to each side that it sees."""


def _torch(name_or_path: str | Path, device: str, threads: int) -> Loaded:
    import torch

    try:
        where = torch.device(device)
        torch.empty(0, device=where)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"device {device} cannot be used ({reason}); try --device cpu") from None
    if threads:
        torch.set_num_threads(threads)
    model = load_model(name_or_path)[0].to(where)

    def run(batch: Array) -> Array:
        with torch.inference_mode():
            return model(torch.from_numpy(batch).to(where)).float().cpu().numpy()

    return run, input_of(model), int(model.margin)  # type: ignore[arg-type]


def _onnx(path: Path, threads: int) -> Loaded:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Threads that wait by spinning take the cores from decoding and alignment.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise WeightsError(f"{path}: ONNX Runtime cannot load it ({reason})") from None
    name = session.get_inputs()[0].name

    def run(batch: Array) -> Array:
        return session.run(None, {name: batch})[0]

    told = session.get_modelmeta().custom_metadata_map
    return run, name, int(told.get("margin", MARGIN))


def _openvino(path: Path, threads: int) -> Loaded:
    import openvino

    settings: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    if threads:
        settings["INFERENCE_NUM_THREADS"] = threads
    try:
        core = openvino.Core()
        read = core.read_model(str(path))
        model = core.compile_model(read, "CPU", settings)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise WeightsError(f"{path}: OpenVINO cannot load it ({reason})") from None

    def run(batch: Array) -> Array:
        return model(batch)[0]

    where = ["framework", "margin"]
    margin = int(read.get_rt_info(where).astype(str)) if read.has_rt_info(where) else MARGIN
    return run, model.inputs[0].any_name, margin


def _out_of_memory(error: Exception) -> bool:
    text = f"{type(error).__name__} {error}".lower()
    return isinstance(error, MemoryError) or any(
        sign in text for sign in ("outofmemory", "out of memory", "bad_alloc", "failed to allocate")
    )


__all__ = ["RUNTIMES", "Engine", "load_engine"]
