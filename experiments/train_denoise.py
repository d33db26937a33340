"""Train a denoiser.

    python experiments/train_denoise.py --max-minutes 2
    python experiments/train_denoise.py --config C/denoise-awgn.toml --data CLIPS --out A
    python experiments/train_denoise.py --config C/denoise.toml --init A/denoise-awgn.safetensors …

(C: experiments/configs.) The second starts from the weights of the first, which learned white noise
only.

Without --data the photographs that scikit-image brings are set in motion. A run is resumed by
giving the same command again; under `torchrun` it uses all processes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from restore.data import ClipDataset, Sample
from restore.errors import RestoreError
from restore.models.student import OnHyperframes, Student
from restore.training import TrainConfig, Trainer
from restore.training.command import build, make_parser, parse, run, training_set, validation_set


def datasets(config: TrainConfig) -> tuple[ClipDataset, list[Sample]]:
    """Return the training set and the validation samples of a configuration."""
    return training_set(config), validation_set(config)


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
        args, config = parse(make_parser(f"Train {what}."), argv)
        print(config.to_toml(), flush=True)
        if args.print_config:
            return 0
        folder = Path(args.out or f"runs/{config.name}")
        training, samples = data(config)
        model = build(config)
        if isinstance(model, Student):
            model = OnHyperframes(model)
        trainer = Trainer(config, model, training, folder)
        say = partial(print, flush=True)
        about = training.describe()
        run(trainer, samples, describe=about, say=say, max_minutes=args.max_minutes)
    except RestoreError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
