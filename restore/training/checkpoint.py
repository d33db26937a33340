"""Checkpoints: one file with all that a run needs to go on as if it had never stopped."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from restore.errors import RestoreError, UsageError

if TYPE_CHECKING:
    from restore.training.loop import Trainer

FORMAT = 1
FREE = ("workers", "device", "threads", "validate_every", "checkpoint_minutes", "cache")
"""Fields that may change between the parts of a run: they do not decide its result."""


def save_checkpoint(path: Path, trainer: Trainer) -> None:
    """Write model, averaged weights, optimizer, schedule, RNG and position, atomically."""
    state = {
        "format": FORMAT,
        "config": dataclasses.asdict(trainer.config),
        "step": trainer.step,
        "skipped": trainer.skipped,
        "model": trainer.model.state_dict(),
        "averaged": trainer.averaged.state_dict(),
        "optimizer": trainer.optimizer.state_dict(),
        "scheduler": trainer.scheduler.state_dict(),
        "scaler": trainer.scaler.state_dict(),
        "rng": torch.get_rng_state(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    torch.save(state, part)
    os.replace(part, path)


def load_checkpoint(path: Path, trainer: Trainer) -> None:
    """Put a trainer where the checkpoint left off.

    Raises:
        RestoreError: If the file is damaged or of another format.
        UsageError: If it belongs to a run with other settings.
    """
    try:
        state = torch.load(path, map_location=trainer.device, weights_only=True)
        ours, theirs = dataclasses.asdict(trainer.config), dict(state["config"])
    except Exception as error:
        raise RestoreError(
            f"{path}: not a checkpoint that can be read ({error}); remove it to start over"
        ) from None
    differ = [
        key
        for key in ours
        if key not in FREE and _plain(ours[key]) != _plain(theirs.get(key, ours[key]))
    ]
    if state.get("format") != FORMAT:
        raise RestoreError(f"{path}: written by another version; remove it to start over")
    if differ:
        raise UsageError(
            f"{path}: this run was started with other settings ({', '.join(differ)}); "
            "use them again or another --out folder"
        )
    trainer.model.load_state_dict(state["model"])
    trainer.averaged.load_state_dict(state["averaged"])
    trainer.optimizer.load_state_dict(state["optimizer"])
    trainer.scheduler.load_state_dict(state["scheduler"])
    trainer.scaler.load_state_dict(state["scaler"])
    torch.set_rng_state(state["rng"].cpu())
    trainer.step, trainer.skipped = int(state["step"]), int(state["skipped"])


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
