"""Train a single-frame student, by a multi-frame teacher or alone.

    python experiments/distill.py --config experiments/configs/edge.toml --teacher denoise
    python experiments/distill.py --config experiments/configs/edge.toml --teacher none
    python experiments/distill.py … --unlabelled FOLDER …
    python experiments/distill.py … --compare 1 2 3

First the teacher looks at windows of aligned frames and labels them (`--lessons` says where the
labels are kept, `--count` how many batches; a second run reads them back). Then the student, which
sees one frame of every window, learns the clean picture, the teacher's, its edges and its features;
with --unlabelled also real clips, at their own size, which have no clean picture but the teacher's.
The temporal term asks it to flicker as little as its targets.

With --compare every seed is trained twice, with the teacher and without, on the same pictures, and
both are measured. Fields of TrainConfig can be set as in train_denoise.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from restore.data import AwgnRecipe, ClipCache, ClipDataset, Consecutive, Sample, find_sources
from restore.errors import RestoreError, UsageError
from restore.models import Student
from restore.training import TrainConfig
from restore.training.command import build, make_parser, parse, run, training_set, validation_set
from restore.training.distilling import StudentTrainer, Teaching
from restore.training.lessons import WithUnlabelled, make_lessons
from restore.training.windows import Clips, WindowDataset
from restore.weights import find, load_model

DECIDE = (
    "data", "recipe", "recipe_config", "sampler", "sampler_config", "patch", "batch", "unroll",
    "slots", "slot_weights", "feedback", "cut_short",
)  # fmt: skip
"""Fields of the configuration that decide what the lessons hold."""
say = partial(print, flush=True)


def lessons_of(args: argparse.Namespace, config: TrainConfig, teacher: str) -> Path:
    """Make what is missing of the lessons of a teacher, or of none; return their folder."""
    network, digest = None, "none"
    if teacher != "none":
        network = load_model(teacher)[0]
        digest = hashlib.sha256(find(teacher).read_bytes()).hexdigest()
    # Every seed of the student takes the same lessons.
    plan = dataclasses.replace(config, seed=0, steps=args.count, accumulate=1)
    clips: Clips = training_set(plan)
    if args.unlabelled and network is not None:
        sources = find_sources(args.unlabelled, cache=ClipCache(config.cache or None), scale=1.0)
        size = (config.patch, config.patch)
        real = ClipDataset(sources, Consecutive(), AwgnRecipe(0.0), patch=size)
        clips = WithUnlabelled(clips, real, args.share)
    known = dataclasses.asdict(plan)
    about = {key: known[key] for key in DECIDE} | {
        "teacher": digest,
        "unlabelled": sorted(args.unlabelled) if network is not None else [],
        "share": args.share,
    }
    folder = Path(f"{args.lessons}-{Path(teacher).stem}")
    batches = WindowDataset(clips, plan)
    make_lessons(folder, batches, network, about=about, count=args.count, say=say)
    return folder


def student_of(config: TrainConfig) -> Student:
    """Return the student of a configuration, seeded.

    Raises:
        UsageError: If the configuration names another network.
    """
    student = build(config)
    if not isinstance(student, Student):
        raise UsageError(f'model "{config.model}" is not a single-frame student')
    return student


def train(
    args: argparse.Namespace,
    config: TrainConfig,
    teacher: str,
    folder: Path,
    samples: Sequence[Sample],
) -> Path | None:
    """Train one student; return its weight file."""
    teaching = None
    if teacher != "none":
        teaching = Teaching(match=args.match, features=args.features, edges=args.edges)
    student = student_of(config)
    trainer = StudentTrainer(config, student, lessons_of(args, config, teacher), folder, teaching)
    unlabelled = [Path(path).name for path in args.unlabelled] if teaching else []
    about: dict[str, Any] = {
        "teacher": teacher,
        "teaching": dataclasses.asdict(teaching) if teaching else None,
        "unlabelled": unlabelled,
    }
    return run(
        trainer,
        samples,
        describe=about,
        say=say,
        max_minutes=args.max_minutes,
    )


def compare(
    args: argparse.Namespace, config: TrainConfig, folder: Path, samples: Sequence[Sample]
) -> str:
    """Train all seeds with the teacher and without; return a Markdown table of both."""
    found: dict[str, list[dict[str, float]]] = {}
    for seed in args.compare:
        for teacher in ("none", args.teacher):
            own = folder / f"{Path(teacher).stem}-{seed}"
            path = train(args, dataclasses.replace(config, seed=seed), teacher, own, samples)
            if path is not None:
                found.setdefault(teacher, []).append(figures_of(path, samples))
    lines = ["| figure | alone | taught | difference |", "| --- | ---: | ---: | ---: |"]
    for figure in found["none"][0]:
        alone, taught = (
            np.array([each[figure] for each in found[kind]]) for kind in ("none", args.teacher)
        )
        cells = [f"{x.mean():.3f} ± {x.std():.3f}" for x in (alone, taught, taught - alone)]
        lines.append(f"| {figure} | {' | '.join(cells)} |")
    return "\n".join(lines)


def figures_of(path: Path, samples: Sequence[Sample]) -> dict[str, float]:
    """Return PSNR and warping error of a student on validation clips, group by group."""
    from evaluate import engine_of, measure, restored

    engine, _ = engine_of(str(path))
    rows: dict[str, list[dict[str, float]]] = {}
    for sample in samples:
        out, _ = restored(sample, engine, 1, False)
        figures = measure(sample.clean, [out], lpips=False)[0]
        rows.setdefault(str(sample.meta["group"]), []).append(figures)
    return {
        f"{name} {group}": float(np.mean([each[name] for each in some]))
        for group, some in rows.items()
        for name in ("psnr", "warp")
    }


def options() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = make_parser("Train a single-frame student, by a teacher or alone.")
    parser.add_argument("--teacher", default="none", help="name or file of its weights, or none")
    parser.add_argument("--unlabelled", nargs="+", default=[], help="real clips without a truth")
    parser.add_argument("--share", type=float, default=0.25, help="share of unlabelled clips")
    parser.add_argument("--lessons", default="runs/lessons", help="where labels are kept")
    parser.add_argument("--count", type=int, default=2000, help="batches that are labelled")
    parser.add_argument("--compare", nargs="+", type=int, metavar="SEED", help="with and without")
    for field in dataclasses.fields(Teaching):
        parser.add_argument(f"--{field.name}", type=float, default=field.default)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    try:
        args, config = parse(options(), argv)
        say(config.to_toml())
        if args.print_config:
            return 0
        student_of(config)
        folder = Path(args.out or f"runs/{config.name}")
        samples = validation_set(config)
        if args.compare:
            say(compare(args, config, folder, samples))
        else:
            train(args, config, args.teacher, folder, samples)
    except RestoreError as error:
        print(f"distill: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
