"""What the training commands share: options, data, network, and the run from start to weights."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from restore.data.cache import ClipCache
from restore.data.datasets import ClipDataset, builtin_source, find_sources
from restore.data.degrade import AwgnRecipe, MixedRecipe, Recipe, Sample
from restore.data.sampling import SAMPLERS
from restore.data.sources import Source
from restore.errors import InterruptedRun, UsageError
from restore.models import MODELS
from restore.models.blocks import load_shallower
from restore.models.student import OnHyperframes
from restore.training.config import TrainConfig
from restore.training.loop import Trainer
from restore.training.record import Best, Recorder, save_averaged, seeds
from restore.training.validation import validate, white_samples

T = TypeVar("T")

RECIPES: dict[str, type[AwgnRecipe] | type[MixedRecipe]] = {
    "awgn": AwgnRecipe,
    "mixed": MixedRecipe,
}
LEVELS = (10, 30, 50)
"""White noise that is validated on, 0-255 units."""


def pick(choices: Mapping[str, T], name: str, option: str) -> T:
    """Return a choice by name.

    Raises:
        UsageError: If there is no such name.
    """
    if name not in choices:
        raise UsageError(f'no {option} "{name}"; known: {", ".join(choices)}')
    return choices[name]


def make_parser(description: str) -> argparse.ArgumentParser:
    """Return the parser of a training command; what it does not know is a field of the config."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        description=description,
        epilog="Any field of TrainConfig can be set: --batch 8",
    )
    parser.add_argument("--config", help="TOML file with fields of TrainConfig")
    parser.add_argument("--data", nargs="+", default=[], help="folders of clips, frames, pictures")
    parser.add_argument("--validation", nargs="+", default=[], help="the same, held out")
    parser.add_argument("--out", default=None, help="folder of the run (default: runs/NAME)")
    parser.add_argument("--max-minutes", type=float, default=math.inf)
    parser.add_argument("--print-config", action="store_true", help="print it and stop")
    return parser


def parse(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None
) -> tuple[argparse.Namespace, TrainConfig]:
    """Return the command line and the configuration it describes."""
    args, rest = parser.parse_known_args(argv)
    if len(rest) % 2 or any(not key.startswith("--") for key in rest[::2]):
        parser.error(f"cannot read {' '.join(rest)}: expected --field value pairs")
    pairs = zip(rest[::2], rest[1::2], strict=True)
    overrides = {key[2:].replace("-", "_"): value for key, value in pairs}
    for name in ("data", "validation"):
        if getattr(args, name):
            overrides[name] = "[" + ", ".join(f"'{path}'" for path in getattr(args, name)) + "]"
    return args, TrainConfig.load(args.config, overrides)


def training_set(config: TrainConfig) -> ClipDataset:
    """Return the training set of a configuration."""
    sampler = pick(SAMPLERS, config.sampler, "sampler")(**config.sampler_config)
    sources: list[Source] = [builtin_source()]
    if config.data:
        sources = find_sources(config.data, cache=ClipCache(config.cache or None))
    patch = (config.patch, config.patch)
    return ClipDataset(sources, sampler, _recipe(config), patch=patch, seed=config.seed)


def validation_set(config: TrainConfig) -> list[Sample]:
    """Return clips that take no part in training, under the noise the configuration trains for."""
    sources: list[Source] = [builtin_source()]
    if config.validation:
        sources = find_sources(config.validation, cache=ClipCache(config.cache or None))
    center = ClipDataset(sources, SAMPLERS["consecutive"](), _recipe(config), seed=config.seed)
    clips = [center.validation(i, 7, (160, 160)).clean for i in range(4)]
    samples = white_samples(clips, LEVELS, config.seed)
    if config.recipe == "mixed":
        for i in range(12):
            sample = center.validation(i, 7, (160, 160))
            samples.append(Sample(sample.clean, sample.noisy, sample.curve, {"group": "mixed"}))
    return samples


def _recipe(config: TrainConfig) -> Recipe:
    recipe: Recipe = pick(RECIPES, config.recipe, "recipe")(**config.recipe_config)  # type: ignore[assignment]  # frozen is as good
    return recipe


def build(config: TrainConfig) -> nn.Module:
    """Return the network of a configuration, seeded, from `init` if that is given."""
    torch.manual_seed(config.seed)
    kind, defaults = pick(MODELS, config.model, "model")
    model = kind(**(defaults | config.model_config))
    if config.init:
        from restore.weights import load_model

        state = load_model(config.init)[0].state_dict()
        try:
            load_shallower(model, state)
        except RuntimeError:
            message = f"init: {config.init} does not fit {config.model} {config.model_config}"
            raise UsageError(message) from None
    return model


def run(
    trainer: Trainer,
    samples: Sequence[Sample],
    *,
    describe: dict[str, Any],
    say: Callable[[str], None],
    max_minutes: float = math.inf,
) -> Path | None:
    """Train, or go on where the same command stopped, and write the averaged weights.

    Args:
        trainer: The run, ready to start.
        samples: What to validate on.
        describe: What the data set says of itself.
        say: Takes the lines of progress.
        max_minutes: Stop cleanly after this time.

    Returns:
        The weight file; None in the processes of a rank above 0.

    Raises:
        InterruptedRun: If it is stopped by hand.
    """
    slots = 1 if isinstance(trainer.model, OnHyperframes) else 5
    config, folder, first = trainer.config, trainer.folder, trainer.rank == 0
    if trainer.resume():
        say(f"resumed at step {trainer.step}")
    if first:
        say("seeds: " + "; ".join(f"{k} {v}" for k, v in seeds(config).items()))
    recorder = Recorder(folder, config, trainer.rank, describe=describe, say=say)
    best = Best(trainer)

    def validated(averaged: nn.Module) -> dict[str, float]:
        figures = validate(
            averaged,
            samples=samples,
            slots=slots,
            twice=config.guided > 0,
            show=recorder.show,
        )
        best(_network(averaged), figures)
        return figures

    began = time.monotonic()
    try:
        done = trainer.fit(report=recorder, validate=validated, max_minutes=max_minutes)
    except KeyboardInterrupt:
        message = "stopped; the same command goes on from the last checkpoint"
        raise InterruptedRun(message) from None
    if not first:
        return None
    path = folder / f"{config.name}.safetensors"
    save_averaged(trainer, _network(trainer.averaged.module), recorder.last, path)
    if best.step not in (0, trainer.step):
        say(f"step {best.step} validated better: {best.path}")
    say(_outcome(trainer, done, time.monotonic() - began, path))
    return path


def _outcome(trainer: Trainer, done: bool, seconds: float, path: Path) -> str:
    share = trainer.waited / max(trainer.worked, 1e-9)
    return (
        f"{'finished' if done else 'stopped'} at step {trainer.step} after "
        f"{seconds / 60:.1f} min, {share:.1%} of it waiting for data; weights in {path}"
    )


def _network(model: nn.Module) -> nn.Module:
    return model.student if isinstance(model, OnHyperframes) else model
