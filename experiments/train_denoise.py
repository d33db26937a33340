"""Train a denoiser.

    python experiments/train_denoise.py --max-minutes 2
    python experiments/train_denoise.py --config experiments/configs/denoise.toml --data CLIPS

A second phase starts from the first one's weights (`init`) with settings of its own:

    python experiments/train_denoise.py --config experiments/configs/denoise-finetune.toml

Without --data the photographs that scikit-image brings are set in motion. A run is resumed by
giving the same command again; under `torchrun` it uses all processes.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch

from restore.data.cache import ClipCache
from restore.data.datasets import ClipDataset, builtin_source, find_sources
from restore.data.degrade import AwgnRecipe, MixedRecipe, Recipe, Sample
from restore.data.sampling import SAMPLERS
from restore.errors import RestoreError, UsageError
from restore.models import MODELS
from restore.training import TrainConfig, Trainer
from restore.training.record import Recorder, save_averaged, seeds
from restore.training.validation import validate, white_samples

T = TypeVar("T")

RECIPES: dict[str, type[AwgnRecipe] | type[MixedRecipe]] = {
    "awgn": AwgnRecipe,
    "mixed": MixedRecipe,
}


def pick(choices: Mapping[str, T], name: str, option: str) -> T:
    """Return a choice by name.

    Raises:
        UsageError: If there is no such name.
    """
    if name not in choices:
        raise UsageError(f'no {option} "{name}"; known: {", ".join(choices)}')
    return choices[name]


def datasets(config: TrainConfig) -> tuple[ClipDataset, list[Sample]]:
    """Return the training set and the validation samples of a configuration."""
    recipe: Recipe = pick(RECIPES, config.recipe, "recipe")(**config.recipe_config)
    sampler = pick(SAMPLERS, config.sampler, "sampler")(**config.sampler_config)
    cache = ClipCache(config.cache or None)
    patch = (config.patch, config.patch)
    sources = find_sources(config.data, cache=cache) if config.data else [builtin_source()]
    training = ClipDataset(sources, sampler, recipe, patch=patch, seed=config.seed)
    held_out = (
        find_sources(config.validation, cache=cache) if config.validation else [builtin_source()]
    )
    center = ClipDataset(held_out, SAMPLERS["consecutive"](), recipe, seed=config.seed)
    clips = [center.validation(i, 7, (160, 160)).clean for i in range(4)]
    samples = white_samples(clips, (10, 30, 50), config.seed)
    if config.recipe == "mixed":
        for i in range(12):
            sample = center.validation(i, 7, (160, 160))
            samples.append(Sample(sample.clean, sample.noisy, sample.curve, {"group": "mixed"}))
    return training, samples


def build(config: TrainConfig) -> torch.nn.Module:
    """Return the network of a configuration, seeded, from `init` if that is given."""
    torch.manual_seed(config.seed)
    kind, defaults = pick(MODELS, config.model, "model")
    model = kind(**(defaults | config.model_config))
    if config.init:
        from restore.weights import load_model

        state = load_model(config.init)[0].state_dict()
        try:
            model.load_state_dict(state)
        except RuntimeError:
            message = f"init: {config.init} does not fit {config.model} {config.model_config}"
            raise UsageError(message) from None
    return model


def parse(
    argv: list[str] | None, what: str = "a denoiser"
) -> tuple[argparse.Namespace, TrainConfig]:
    """Return the command line and the configuration it describes."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        description=f"Train {what}.",
        epilog="Any field of TrainConfig can be set: --batch 8",
    )
    parser.add_argument("--config", help="TOML file with fields of TrainConfig")
    parser.add_argument("--data", nargs="+", default=[], help="folders of clips, frames, pictures")
    parser.add_argument("--validation", nargs="+", default=[], help="the same, held out")
    parser.add_argument("--out", default=None, help="folder of the run (default: runs/NAME)")
    parser.add_argument("--max-minutes", type=float, default=math.inf)
    parser.add_argument("--print-config", action="store_true", help="print it and stop")
    args, rest = parser.parse_known_args(argv)
    if len(rest) % 2 or any(not key.startswith("--") for key in rest[::2]):
        parser.error(f"cannot read {' '.join(rest)}: expected --field value pairs")
    pairs = zip(rest[::2], rest[1::2], strict=True)
    overrides = {key[2:].replace("-", "_"): value for key, value in pairs}
    for name in ("data", "validation"):
        if getattr(args, name):
            overrides[name] = "[" + ", ".join(f"'{path}'" for path in getattr(args, name)) + "]"
    return args, TrainConfig.load(args.config, overrides)


def main(
    argv: list[str] | None = None,
    *,
    data: Callable[[TrainConfig], tuple[ClipDataset, list[Sample]]] = datasets,
    what: str = "a denoiser",
    prog: str = "train_denoise",
) -> int:
    """Run the command; returns its exit code.

    Args:
        argv: Arguments; default: those of the process.
        data: Gives training set and validation samples of a configuration.
        what: What is trained, for the help.
        prog: Name of the command, for messages.
    """
    try:
        args, config = parse(argv, what)
        print(config.to_toml(), flush=True)
        if args.print_config:
            return 0
        folder = Path(args.out or f"runs/{config.name}")
        training, samples = data(config)
        trainer = Trainer(config, build(config), training, folder)
        if trainer.resume():
            print(f"resumed at step {trainer.step}", flush=True)
        if trainer.rank == 0:
            print("seeds: " + "; ".join(f"{k} {v}" for k, v in seeds(config).items()), flush=True)
        say = partial(print, flush=True)
        recorder = Recorder(folder, config, trainer.rank, describe=training.describe(), say=say)
        began = time.monotonic()
        done = trainer.fit(
            report=recorder,
            validate=lambda m: validate(m, samples, show=recorder.show),
            max_minutes=args.max_minutes,
        )
        if trainer.rank == 0:
            save_averaged(trainer, folder, recorder.last)
            share = trainer.waited / max(trainer.worked, 1e-9)
            print(
                f"{'finished' if done else 'stopped'} at step {trainer.step} after "
                f"{(time.monotonic() - began) / 60:.1f} min, {share:.1%} of it waiting for data; "
                f"weights in {folder / (config.name + '.safetensors')}"
            )
    except RestoreError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from the last checkpoint", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
