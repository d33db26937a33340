"""What enlarging adds to the streaming loop: presets, weights, denoising on the way."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from restore.engine import Engine, load_engine
from restore.errors import UsageError, WeightsError
from restore.hyperframe import RESIDUAL_NOISE, SLOT, reference_index
from restore.memory import memory_slots
from restore.sequence import PRESETS, Preset
from restore.weights import find
from restore.weights.manifest import Manifest

Array = np.ndarray

SCALES = (2, 3, 4)
SLOTS = {"fast": 1, "balanced": 3, "best": 5}
"""Slots of a hyperframe by preset: with the previous output beside them, fewer are needed."""


def preset_for(name: str, scale: int) -> Preset:
    """Return a preset of `PRESETS` for a task.

    Raises:
        UsageError: If preset or scale is unknown.
    """
    if name not in PRESETS:
        raise UsageError(f'preset "{name}" is unknown; choose one of {", ".join(PRESETS)}')
    if scale == 1:
        return PRESETS[name]
    if scale not in SCALES:
        raise UsageError(f"scale must be 2, 3 or 4, got {scale}")
    return replace(PRESETS[name], model=default_model(scale), slots=SLOTS[name], passes=1)


def default_model(scale: int) -> str:
    """Return the name of the weights for real videos; else, of those for clean ones."""
    names = (f"upscale-real-x{scale}", f"upscale-x{scale}")
    known = Manifest.read().entries
    return next((name for name in names if name in known), names[0])


def substitution(asked: str | None, used: str, scale: int) -> list[str]:
    """Return a line that says so where other weights than those for real videos were used unasked.

    Args:
        asked: Model that the user named.
        used: Name of the model that ran; empty if none did.
        scale: Enlargement.
    """
    if asked is not None or not used or scale == 1 or "upscale-real" in used:
        return []
    return [f"no weights for noisy videos at scale {scale} yet: {used} is for clean ones"]


def load_task(  # noqa: D417  arguments that belong together are described together
    model: str,
    denoiser: str | None,
    scale: int,
    *,
    runtime: str = "auto",
    device: str = "auto",
    tile: int | None = None,
) -> Engine:
    """Load the model of a task, and a denoiser in front of it if one is named.

    Args:
        model: Name of known weights or a file.
        denoiser: The same for a model that cleans what is to be enlarged first; None leaves it.
        scale: Enlargement that is asked for; 1 is denoising.
        runtime, device, tile: As `load_engine` takes them.

    Raises:
        UsageError: If the model enlarges by another factor.
        WeightsError: If there are no weights for that scale.
        RestoreError: What `load_engine` raises.
    """
    if scale > 1 and model == default_model(scale):
        _check_known(model, scale)
    engine = load_engine(model, runtime=runtime, device=device, tile=tile)
    if engine.scale != scale:
        does = f"enlarges by {engine.scale}" if engine.scale > 1 else "does not enlarge"
        raise UsageError(f"model {engine.name} {does}; asked for is a scale of {scale}")
    if denoiser is None or scale == 1:
        return engine
    return Cleaned(load_engine(denoiser, runtime=runtime, device=device, tile=tile), engine)


def _check_known(model: str, scale: int) -> None:
    known = Manifest.read().entries
    if model in known:
        return
    others = {entry.config["scale"] for entry in known.values() if "scale" in entry.config}
    told = " or ".join(f"--scale {other}" for other in sorted(others)) or "none"
    raise WeightsError(
        f"{model}: no weights enlarge by {scale} yet; there are some for: {told}. "
        "Or name a file: --model FILE"
    )


def origin(engine: Engine, model: str, denoiser: str | None) -> dict[str, str]:
    """Return what a run's models are, exactly: two runs that differ in it give other frames."""
    told = {"runtime": engine.runtime, "weights": _digest(model, engine.runtime)}
    if isinstance(engine, Cleaned) and denoiser is not None:
        told["denoiser"] = _digest(denoiser, engine.denoiser.runtime)
    return told


def _digest(model: str, runtime: str) -> str:
    path = find(model, ".safetensors" if runtime == "torch" else ".onnx")
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Cleaned(Engine):
    """An upscaler whose reference is denoised first.

    The denoised picture goes into the hyperframe as one with less noise, as everywhere; its
    neighbours stay what they are.
    """

    def __init__(self, denoiser: Engine, upscaler: Engine) -> None:
        """Chain two models."""
        super().__init__(
            upscaler.run,
            name=f"{denoiser.name} + {upscaler.name}",
            runtime=upscaler.runtime,
            tile=upscaler.tile,
            scale=upscaler.scale,
        )
        self.denoiser, self.upscaler = denoiser, upscaler

    def __call__(self, hyperframe: Array) -> Array:
        """Denoise the reference, then enlarge it; arguments as in `Engine`."""
        count = len(hyperframe) - SLOT * memory_slots(self.scale)
        clean = self.denoiser(hyperframe[:count])
        changed = hyperframe.copy()
        slots = changed[:count].reshape(-1, SLOT, *hyperframe.shape[1:])
        slot = slots[reference_index(slots)]
        slot[:3] = clean
        slot[5:] *= RESIDUAL_NOISE
        return self.upscaler(changed)
