"""What a training run leaves behind: progress, curves, pictures, weights."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from restore.training.config import TrainConfig

if TYPE_CHECKING:
    from torch import nn

    from restore.training.loop import Trainer

Array = np.ndarray

EVERY = 50
"""Steps that one line of progress averages."""


class Recorder:
    """Tells progress with the time left, and writes TensorBoard curves and `log.jsonl`."""

    def __init__(
        self,
        folder: Path,
        config: TrainConfig,
        rank: int,
        *,
        describe: dict[str, Any],
        say: Callable[[str], None],
    ) -> None:
        """Open the logs of a run; processes of a rank above 0 write nothing.

        Args:
            folder: Where to write.
            config: The run's configuration.
            rank: Number of the process.
            describe: What the data set says of itself, kept in `data.json`.
            say: Takes the lines of progress.
        """
        self._say = say
        self.config, self.last = config, dict[str, float]()
        self._sums: dict[str, list[float]] = {}
        self._strips: dict[str, Array] = {}
        self._began, self._first = time.monotonic(), -1
        self._board: Any = None
        if rank:
            return
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(config.to_toml())
        (folder / "data.json").write_text(
            json.dumps(describe | {"seeds": seeds(config)}, indent=1, default=str)
        )
        self._log = (folder / "log.jsonl").open("a")
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            self._say("no TensorBoard curves: install tensorboard to have them")
        else:
            self._board = SummaryWriter(str(folder))
            self._board.add_text("configuration", f"```\n{config.to_toml()}```")

    def show(self, name: str, strip: Array) -> None:
        """Keep a picture (H, W, 3) in [0, 1] for TensorBoard, until the step of it is known."""
        self._strips[name] = strip

    def __call__(self, step: int, figures: dict[str, float]) -> None:
        """Take the figures of one step."""
        if self._first < 0:
            self._first = step - 1
        for key, value in figures.items():
            self._sums.setdefault(key, []).append(value)
        validated = "val_psnr" in figures
        if step % EVERY and not validated and step != self.config.steps:
            return
        means = {key: sum(values) / len(values) for key, values in self._sums.items()}
        self._sums.clear()
        self.last |= means
        self._log.write(json.dumps({"step": step, **means}) + "\n")
        self._log.flush()
        if self._board is not None:
            for key, value in means.items():
                self._board.add_scalar(key.replace(" ", "/"), value, step)
            for name, strip in self._strips.items():
                title = f"noisy, restored, clean/{name}"
                self._board.add_image(title, strip, step, dataformats="HWC")
            self._board.flush()
        self._strips.clear()
        self._say(self._line(step, means))

    def _line(self, step: int, means: dict[str, float]) -> str:
        elapsed = time.monotonic() - self._began
        left = elapsed / max(step - self._first, 1) * (self.config.steps - step)
        line = (
            f"{step}/{self.config.steps}  loss {means['loss']:.5f}  PSNR {means['psnr']:.2f} "
            f"(noisy {means['psnr_noisy']:.2f}) dB  waiting {means['waiting']:.1%}  "
            f"{elapsed / 60:.1f} min, {left / 60:.0f} min left"
        )
        groups = [f"{k[5:]} {v:.2f}" for k, v in means.items() if k.startswith("psnr ")]
        if groups:
            line += f"\n  validation {', '.join(groups)} dB, gain {means['val_gain']:.2f} dB"
        return line


def seeds(config: TrainConfig) -> dict[str, str]:
    """Return what every source of randomness is keyed by: one seed, and where in the run it is."""
    return {
        "model": f"{config.seed}",
        "plan of a step": f"[{config.seed}, step]",
        "sampling and degradation of a clip": f"[{config.seed}, step, index in the batch]",
        "data processes": "none of their own: a clip is the same whichever process makes it",
    }


class Best:
    """Keeps the weights that validated best: a run may be spoilt on its way."""

    def __init__(self, trainer: Trainer) -> None:
        """Start with the best of the run so far, if it goes on."""
        from restore.weights import load_model

        self.trainer, self.gain, self.step = trainer, -math.inf, 0
        self.path = trainer.folder / f"{trainer.config.name}-best.safetensors"
        if trainer.step and self.path.is_file():
            origin = load_model(self.path)[1].origin
            self.gain, self.step = origin["scores"]["val_gain"], origin["step"]

    def __call__(self, network: nn.Module, figures: dict[str, float]) -> None:
        """Take the averaged weights of the current step and their validation."""
        if figures["val_gain"] > self.gain:
            self.gain, self.step = figures["val_gain"], self.trainer.step
            save_averaged(self.trainer, network, figures, self.path)


def save_averaged(
    trainer: Trainer, network: nn.Module, figures: dict[str, float], path: Path
) -> None:
    """Write averaged weights with the run's configuration, as safetensors."""
    from restore.weights import save_model

    config = trainer.config
    meta = {
        "name": config.name,
        "model": config.model,
        "config": config.model_config,
        "training": _published(config),
        "step": trainer.step,
        "scores": {k: round(v, 4) for k, v in figures.items() if k.startswith(("psnr ", "val_"))},
    }
    save_model(network, path, meta)


def _published(config: TrainConfig) -> dict[str, Any]:
    """Return the settings with names in place of paths, which are of one machine only."""
    settings = dataclasses.asdict(config)
    for key in ("data", "validation"):
        settings[key] = [Path(path).name for path in settings[key]]
    return settings | {"cache": "", "init": Path(config.init).name}
