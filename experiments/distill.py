"""Train a single-frame student, by a multi-frame teacher or alone.

    python experiments/distill.py --config experiments/configs/student.toml --teacher denoise
    python experiments/distill.py --config experiments/configs/student.toml --teacher none
    python experiments/distill.py … --unlabelled FOLDER …

The student sees one frame of every window, the teacher all of them. The student learns the clean
picture, the teacher's, its edges and its features; with --unlabelled also real clips, which have no
clean picture but the teacher's. The temporal term asks it to flicker as little as its targets.
All other options are those of train_denoise.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from train_denoise import build, datasets, parse

from restore.analyse import estimate_noise
from restore.data import AwgnRecipe, Consecutive, Sample
from restore.data.datasets import ClipDataset, find_sources
from restore.errors import RestoreError, UsageError
from restore.losses import charbonnier, edge_loss
from restore.models import Student
from restore.models.blocks import Trunk
from restore.models.student import single_frame
from restore.training import TrainConfig, Trainer
from restore.training.objective import Objective
from restore.training.record import Recorder, save_averaged
from restore.training.validation import validate
from restore.training.windows import Clips, Window
from restore.weights import load_model


@dataclass(frozen=True)
class Lesson:
    """What the student learns from its teacher."""

    teacher: str = "none"
    """Name or file of the teacher's weights; "none" trains directly."""
    match: float = 1.0
    """Weight of the distance to the teacher's picture; that to the clean picture has 1."""
    features: float = 0.02
    """Weight of the relative distance to the teacher's features."""
    edges: float = 0.1
    """Weight of the distance to the teacher's edges."""
    share: float = 0.25
    """Share of unlabelled clips."""


class Pupil(Student):
    """A student in training: it takes hyperframes, and adapts its features to the teacher's."""

    adapter: nn.Module

    def forward(self, hyperframe: Tensor) -> Tensor:
        """Restore the reference of a hyperframe (B, T*8, H, W)."""
        return super().forward(single_frame(hyperframe))


class Taught(Objective):
    """The loss of a student: the usual one, and the teacher's picture, edges and features."""

    def __init__(
        self, config: TrainConfig, device: torch.device, lesson: Lesson, teacher: nn.Module
    ) -> None:
        """Take a teacher; `listen` has to be called before the first step."""
        super().__init__(config, device)
        self.lesson, self.teacher = lesson, teacher.to(device).eval().requires_grad_(False)
        self.features: dict[str, Tensor] = {}
        self.taught: Tensor | None = None

    def listen(self, pupil: Pupil) -> None:
        """Keep the features of both networks from now on."""
        self.pupil = pupil
        for name, network in (("teacher", self.teacher), ("pupil", pupil)):
            trunk_of(network).register_forward_hook(partial(self._keep, name))

    def __call__(
        self,
        output: Tensor,
        clean: Tensor,
        hyperframe: Tensor,
        window: Window,
        before: tuple[Tensor, Tensor] | None,
        step: int,
    ) -> dict[str, Tensor]:
        """Return the terms and their weighted sum under "loss".

        Where `clean` is not a number the clip is unlabelled: the teacher's picture is put there.
        """
        with torch.no_grad():
            if window.links and self.taught is not None:
                # The teacher is fed its own pictures back, not those of its student.
                window.fill(self.taught.cpu().numpy())
                hyperframe = torch.from_numpy(window.hyperframe).to(output.device)
            features = self.features["pupil"]
            self.taught = taught = self.teacher(hyperframe)
            clean.copy_(torch.where(clean.isnan(), taught, clean))
        terms = super().__call__(output, clean, hyperframe, window, before, step)
        lesson = self.lesson
        terms["match"] = charbonnier(output, taught)
        terms["taught edges"] = edge_loss(output, taught)
        terms["features"] = distance(self.pupil.adapter(features), self.features["teacher"])
        terms["loss"] = (
            terms["loss"]
            + lesson.match * terms["match"]
            + lesson.edges * terms["taught edges"]
            + lesson.features * terms["features"]
        )
        return terms

    def _keep(self, name: str, module: nn.Module, inputs: object, output: Tensor) -> None:
        self.features[name] = output


def trunk_of(network: nn.Module) -> Trunk:
    """Return the part of a network that yields its features.

    Raises:
        UsageError: If it has none.
    """
    trunk = getattr(network, "trunk", None)
    if not isinstance(trunk, Trunk):
        raise UsageError(f"teacher: {type(network).__name__} has no trunk to learn features from")
    return trunk


def width(network: nn.Module) -> int:
    """Return the number of channels of a network's features."""
    first = next(m for m in trunk_of(network).modules() if isinstance(m, nn.Conv2d))
    return first.in_channels


def distance(features: Tensor, wanted: Tensor) -> Tensor:
    """Return the mean absolute difference over the mean size of what is wanted."""
    height, width = (min(a, b) for a, b in zip(features.shape[2:], wanted.shape[2:], strict=True))
    features, wanted = features[..., :height, :width], wanted[..., :height, :width]
    return (features - wanted).abs().mean() / wanted.abs().mean().clamp_min(1e-6)


class WithUnlabelled:
    """Clips of which a share is real footage: its noise is measured, its clean picture unknown."""

    def __init__(self, labelled: Clips, unlabelled: ClipDataset, share: float) -> None:
        """Mix two sets of clips."""
        self.labelled, self.unlabelled, self.share = labelled, unlabelled, share

    def sample(self, step: int, index: int, *, frames: int) -> Sample:
        """Return the clip that belongs to a step and an index."""
        rng = np.random.default_rng([self.unlabelled.seed, step, index, 1])
        if rng.random() >= self.share:
            return self.labelled.sample(step, index, frames=frames)
        real = self.unlabelled.sample(step, index, frames=frames).clean
        return Sample(np.full_like(real, np.nan), real, estimate_noise(list(real)))


def pupil_of(config: TrainConfig) -> Pupil:
    """Return the student of a configuration, ready for training.

    Raises:
        UsageError: If the configuration names another network.
    """
    student = build(config)
    if not isinstance(student, Student):
        raise UsageError(f'model "{config.model}" is not a single-frame student')
    student.__class__ = Pupil
    assert isinstance(student, Pupil)
    return student


def lesson_of(argv: list[str] | None) -> tuple[Lesson, list[str], list[str]]:
    """Return the lesson, the folders of unlabelled clips and the options that are left."""
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    for field in dataclasses.fields(Lesson):
        kind = str if field.name == "teacher" else float
        parser.add_argument(f"--{field.name}", type=kind, default=field.default)
    parser.add_argument("--unlabelled", nargs="+", default=[])
    args, rest = parser.parse_known_args(argv)
    values = {field.name: getattr(args, field.name) for field in dataclasses.fields(Lesson)}
    return Lesson(**values), args.unlabelled, rest


def prepare(config: TrainConfig, lesson: Lesson, unlabelled: list[str], folder: Path) -> Trainer:
    """Return the training run of a student."""
    clips: Clips = datasets(config)[0]
    if unlabelled and lesson.teacher != "none":
        size = (config.patch, config.patch)
        sources = find_sources(unlabelled)
        real = ClipDataset(sources, Consecutive(), AwgnRecipe(0.0), patch=size, seed=config.seed)
        clips = WithUnlabelled(clips, real, lesson.share)
    pupil = pupil_of(config)
    if lesson.teacher == "none":
        return Trainer(config, pupil, clips, folder)
    teacher = load_model(lesson.teacher)[0]
    pupil.adapter = nn.Conv2d(*(width(network) for network in (pupil, teacher)), 1)
    trainer = Trainer(config, pupil, clips, folder)
    # Listening comes last: the averaged copy of the pupil must not carry the listeners.
    taught = Taught(config, trainer.device, lesson, teacher)
    taught.listen(pupil)
    trainer.objective = taught
    return trainer


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    try:
        lesson, unlabelled, rest = lesson_of(argv)
        args, config = parse(rest)
        print(lesson, config.to_toml(), sep="\n", flush=True)
        if args.print_config:
            return 0
        folder = Path(args.out or f"runs/{config.name}")
        trainer = prepare(config, lesson, unlabelled, folder)
        samples = datasets(config)[1]
        if trainer.resume():
            print(f"resumed at step {trainer.step}", flush=True)
        about = {"lesson": dataclasses.asdict(lesson), "unlabelled": unlabelled}
        say = partial(print, flush=True)
        recorder = Recorder(folder, config, trainer.rank, describe=about, say=say)
        done = trainer.fit(
            report=recorder,
            validate=lambda m: validate(m, samples, slots=1, show=recorder.show),
            max_minutes=args.max_minutes,
        )
        if trainer.rank == 0:
            if lesson.teacher != "none":
                del trainer.averaged.module.adapter
            path = save_averaged(trainer, folder, recorder.last)
            print(f"{'finished' if done else 'stopped'} at step {trainer.step}; weights in {path}")
    except RestoreError as error:
        print(f"distill: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from the last checkpoint", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
