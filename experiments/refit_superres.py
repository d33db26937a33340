"""Solve the last layer of a trained upscaler by least squares, a few times in a row.

python experiments/refit_superres.py --weights runs/upscale-x4/upscale-x4.safetensors \
    --config experiments/configs/upscale-x4.toml --data CLIPS --out runs/refitted
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from train_superres import datasets

from restore.errors import RestoreError, UsageError
from restore.models import Upscaler
from restore.training import TrainConfig
from restore.training.command import make_parser, parse
from restore.training.refit import refit
from restore.training.validation import validate
from restore.training.windows import WindowDataset
from restore.weights import load_model, save_model

OTHER_SEED = 1000
"""Added to the seed of the training: the clips are new to the network."""


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = make_parser("Solve the last layer of an upscaler.")
    parser.add_argument("--weights", required=True, help="safetensors file of a training run")
    parser.add_argument("--passes", type=int, default=4, help="how often (default: %(default)s)")
    parser.add_argument("--batches", type=int, default=16, help="of a pass (default: %(default)s)")
    parser.add_argument("--ridge", type=float, default=0.01, help="default: %(default)s")
    try:
        args, config = parse(parser, argv)
        _run(args.weights, config, args.passes, args.batches, args.ridge, Path(args.out or "runs"))
    except RestoreError as error:
        print(f"refit_superres: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _run(
    weights: str, config: TrainConfig, passes: int, count: int, ridge: float, folder: Path
) -> None:
    network, entry = load_model(weights)
    if not isinstance(network, Upscaler):
        raise UsageError(f"{weights}: not an upscaler")
    config = replace(config, seed=config.seed + OTHER_SEED, steps=passes * count)
    training, samples = datasets(config)
    windows = WindowDataset(training, config)
    print(f"before: {_figures(validate(network, samples, slots=3))}", flush=True)
    for number in range(passes):
        batches = (windows[number * count + i] for i in range(count))
        gone = refit(network, batches, ridge=ridge, floor=config.noise_floor, seed=number)
        print(f"pass {number + 1}: {gone:.1%} of the squared error solved", flush=True)
    scores = validate(network, samples, slots=3)
    print(f"after: {_figures(scores)}", flush=True)
    about = {"refit": {"passes": passes, "batches": count, "ridge": ridge}}
    rounded = {key: round(value, 4) for key, value in scores.items()}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{entry.name}.safetensors"
    save_model(network, path, entry.as_dict() | about | {"scores": rounded})
    print(f"weights in {path}")


def _figures(scores: dict[str, float]) -> str:
    gains = {key[5:]: value for key, value in scores.items() if key.startswith("gain ")}
    return ", ".join(f"{group} {gain:+.2f} dB" for group, gain in gains.items())


if __name__ == "__main__":
    sys.exit(main())
