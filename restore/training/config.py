"""The configuration of a training run: one frozen dataclass, read from TOML, shown in full."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from restore.errors import UsageError


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides the result of a training run; stored with the weights."""

    name: str = "denoise"
    """Name of the run and of the weight file."""
    model: str = "denoiser"
    """Key of `restore.models.MODELS`."""
    model_config: dict[str, Any] = field(default_factory=dict)
    """Overrides of that model's own configuration."""
    init: str = ""
    """Weights to start from: a name or a file; empty starts from scratch. They may be those of the
    same network with fewer residual blocks: the new ones start as the identity."""

    data: tuple[str, ...] = ()
    """Folders of videos, frames or photographs; empty takes the built-in photographs."""
    validation: tuple[str, ...] = ()
    """The same for validation; empty takes unseen crops of the built-in photographs."""
    recipe: str = "mixed"
    """Degradation recipe: "awgn" or "mixed"."""
    recipe_config: dict[str, Any] = field(default_factory=dict)
    """Overrides of that recipe's fields."""
    scale: int = 1
    """Enlargement; above 1 clips are shrunk by it before they are degraded."""
    shrinks: tuple[str, ...] = ("bi", "bi", "bd")
    """Ways to shrink, each as likely as the others: see `restore.data.shrink`."""
    sampler: str = "consecutive"
    """How frames are drawn from a clip, by name: see `restore.data.sampling`."""
    sampler_config: dict[str, Any] = field(default_factory=dict)
    """Overrides of that sampler's fields."""
    cache: str = ""
    """Folder for decoded frames; empty keeps them in memory."""
    patch: int = 96
    """Side of the training crops in pixels, of the clean picture."""
    batch: int = 4
    """Clips per step and process."""
    accumulate: int = 1
    """Batches per optimizer step."""
    replay: int = 1
    """Steps that every batch serves on average; making one costs as much as learning from it. Above
    1 a resumed run is no longer equal to an uninterrupted one: the kept batches are new."""
    unroll: int = 4
    """Consecutive frames restored per clip, each fed back to the next."""
    slots: tuple[int, ...] = (1, 3, 5, 7)
    """Slot counts T that steps draw from."""
    slot_weights: tuple[float, ...] = (0.1, 0.15, 0.6, 0.15)
    """Their shares."""
    feedback: float = 0.0
    """Share of steps in which the previous output is fed back."""
    guided: float = 0.0
    """Share of steps in which motion is searched as in a second pass: at full size, in pictures
    as a first pass leaves them. Above 0 two passes are validated."""
    cut_short: float = 0.3
    """Share of steps whose clips end soon after the last reference, as clips and shots do."""

    steps: int = 20_000
    """Optimizer steps of the whole run."""
    learning_rate: float = 1e-3
    """Peak learning rate at an effective batch of 16 pictures; follows its square root."""
    final_rate: float = 0.01
    """Learning rate at the end over that at the peak (cosine)."""
    warmup: int = 300
    """Steps of linear warm-up."""
    weight_decay: float = 0.0
    """Decoupled weight decay (AdamW)."""
    clip: float = 1.0
    """Gradients are clipped to this norm."""
    ema: float = 0.999
    """Decay of the averaged weights, which are the ones that are kept."""
    amp: str = "off"
    """Autocast: "off", "bf16" or "fp16" (fp16 with loss scaling)."""
    checkpointing: bool = False
    """Recompute activations in the backward pass: less memory, more time."""

    pixel: float = 1.0
    """Weight of the Charbonnier loss."""
    noise_floor: float = 0.02
    """A clip counts in the pixel loss by 1 / (σ, or the error of bicubic enlargement, + this)."""
    edge: float = 0.1
    """Weight of the edge loss."""
    lpips: float = 0.02
    """Weight of LPIPS."""
    temporal: float = 0.1
    """Weight of the temporal loss."""
    pixel_phase: float = 0.8
    """Share of the steps before LPIPS and the edge loss join."""
    lpips_net: str = "alex"
    """Backbone of LPIPS: "alex" or "vgg"."""

    seed: int = 0
    """The one seed: model, sampling, degradation, workers."""
    workers: int = 1
    """Data processes; 0 builds the batches in the training process."""
    device: str = "auto"
    """"cpu", "cuda", … or "auto"."""
    threads: int = 1
    """Threads of PyTorch on the CPU."""
    validate_every: int = 1000
    """Steps between validations."""
    checkpoint_minutes: float = 5.0
    """Minutes between checkpoints."""
    bad_steps: int = 20
    """Non-finite steps in a row that are skipped before the run stops."""

    def __post_init__(self) -> None:
        """Reject what cannot work, naming the field."""
        for name in (
            "batch", "accumulate", "replay", "unroll", "steps", "patch", "validate_every", "scale"
        ):  # fmt: skip
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, got {getattr(self, name)}")
        if len(self.slots) != len(self.slot_weights) or min(self.slots) < 1:
            raise UsageError("slots and slot_weights must pair up, slots from 1 upwards")
        if self.amp not in ("off", "bf16", "fp16"):
            raise UsageError(f'amp must be "off", "bf16" or "fp16", got "{self.amp}"')
        if self.patch % self.scale:
            raise UsageError(f"patch {self.patch} must be a multiple of scale {self.scale}")
        if self.guided and (self.feedback or self.scale > 1):
            raise UsageError("guided goes with neither feedback nor an enlargement")
        if not 0 <= self.ema < 1:
            raise UsageError(f"ema must lie in [0, 1), got {self.ema}")

    @classmethod
    def load(cls, path: str | Path | None, overrides: Mapping[str, str] = {}) -> TrainConfig:
        """Read a TOML file and apply overrides given as text.

        Args:
            path: TOML file with the fields of this class; None starts from the defaults.
            overrides: Field -> value as it would stand in TOML, or a bare word; `a.b` reaches
                into a table.

        Raises:
            UsageError: If the file is missing or no TOML, or a field is unknown or of a wrong type.
        """
        values: dict[str, Any] = {}
        if path is not None:
            try:
                values = tomllib.loads(Path(path).read_text())
            except OSError as error:
                raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
            except tomllib.TOMLDecodeError as error:
                raise UsageError(f"{path}: not valid TOML: {error}") from None
        for key, text in overrides.items():
            *tables, last = key.split(".")
            at = values
            for table in tables:
                at = at.setdefault(table, {})
                if not isinstance(at, dict):
                    raise UsageError(f'{key}: "{table}" is not a table')
            at[last] = _value(text)
        return cls.from_dict(values)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainConfig:
        """Build from plain values, as `dataclasses.asdict` or TOML give them.

        Raises:
            UsageError: If a field is unknown or of a wrong type.
        """
        known = {f.name: f for f in dataclasses.fields(cls)}
        defaults = cls()
        checked = {}
        for key, value in values.items():
            if key not in known:
                raise UsageError(f'unknown training option "{key}"; known: {", ".join(known)}')
            checked[key] = _checked(key, value, getattr(defaults, key))
        return cls(**checked)

    def to_toml(self) -> str:
        """Return the whole configuration as TOML: what is printed and stored."""
        lines, tables = [], []
        for key, value in dataclasses.asdict(self).items():
            if isinstance(value, dict):
                rows = "".join(f"{_key(k)} = {_toml(v)}\n" for k, v in value.items())
                tables.append(f"[{key}]\n{rows}" if rows else "")
            else:
                lines.append(f"{key} = {_toml(value)}")
        return "\n".join([*lines, *filter(None, tables)])


def _checked(key: str, value: Any, default: Any) -> Any:
    """Return the value in the type of the field's default; a whole number may stand for a float."""
    if isinstance(default, tuple):
        items = tuple(value) if isinstance(value, list | tuple) else (value,)
        like = default[0] if default else ""
        return tuple(_checked(key, item, like) for item in items)
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(default, dict) and isinstance(value, Mapping):
        return dict(value)
    if type(value) is not type(default):
        raise UsageError(f"{key} must be of type {type(default).__name__}, got {value!r}")
    return value


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # A JSON string is a TOML string, but for this one character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_toml(v)}" for k, v in value.items()) + "}"
    return repr(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)
