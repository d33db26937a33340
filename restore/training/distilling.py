"""Distillation: a single-frame student that learns from lessons."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from restore.align.warp import resize_flow
from restore.errors import UsageError
from restore.losses import charbonnier, edge_loss, temporal_loss
from restore.models.student import OnHyperframes, Student
from restore.training.config import TrainConfig
from restore.training.lessons import Lesson, LessonDataset, Listener, trunk_of
from restore.training.loop import Trainer
from restore.training.objective import Objective
from restore.training.windows import Window


@dataclass(frozen=True)
class Teaching:
    """How much the student listens to its teacher; the clean picture has weight 1."""

    match: float = 0.2
    """Weight of the distance to the teacher's picture."""
    features: float = 0.002
    """Weight of the relative distance to the teacher's features."""
    edges: float = 0.01
    """Weight of the distance to the teacher's edges, which joins with the edge loss."""


class Pupil(OnHyperframes):
    """A student in training, with a 1x1 convolution from its features to its teacher's."""

    def __init__(self, student: Student, channels: int) -> None:
        """Wrap a student; `channels` are those of the teacher's features."""
        super().__init__(student)
        first = next(m for m in trunk_of(student).modules() if isinstance(m, nn.Conv2d))
        self.adapter = nn.Conv2d(first.in_channels, channels, 1)


class StudentObjective(Objective):
    """The loss of a student: the usual one, steadiness, and what the teacher says."""

    def __init__(
        self, config: TrainConfig, device: torch.device, teaching: Teaching, pupil: OnHyperframes
    ) -> None:
        """Listen to a student from now on.

        Copies of the student that are made later would carry the listener: make them before.
        """
        super().__init__(config, device)
        self.teaching, self.pupil = teaching, pupil
        self.listener = Listener(pupil.student) if isinstance(pupil, Pupil) else None

    def __call__(
        self,
        output: Tensor,
        clean: Tensor,
        window: Window,
        before: tuple[Tensor, Tensor] | None,
        step: int,
    ) -> dict[str, Tensor]:
        """Return the terms and their weighted sum under "loss"."""
        assert isinstance(window, Lesson)
        terms = super().__call__(output, clean, window, before, step)
        if self.config.temporal > 0 and before is not None:
            flow, trust = _full(window, output)
            terms["temporal"] = temporal_loss(output, before[0], clean, before[1], flow, trust)
            terms["loss"] = terms["loss"] + self.config.temporal * terms["temporal"]
        if isinstance(self.pupil, Pupil) and self.listener is not None:
            self._teach(terms, output, window, step)
        return terms

    def _teach(self, terms: dict[str, Tensor], output: Tensor, window: Lesson, step: int) -> None:
        """Add what the teacher says to the terms."""
        assert isinstance(self.pupil, Pupil)
        assert self.listener is not None
        assert window.taught is not None
        assert window.features is not None
        teaching = self.teaching
        taught, wanted = (
            torch.from_numpy(x).to(output.device) for x in (window.taught, window.features)
        )
        share = self._share(window).to(output.device)
        terms["match"] = charbonnier(output, taught, share)
        terms["features"] = distance(self.pupil.adapter(self.listener.features), wanted)
        terms["loss"] = (
            terms["loss"] + teaching.match * terms["match"] + teaching.features * terms["features"]
        )
        if step >= self.config.pixel_phase * self.config.steps:
            terms["taught edges"] = edge_loss(output, taught)
            terms["loss"] = terms["loss"] + teaching.edges * terms["taught edges"]


def _full(window: Lesson, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return flow and trust of a lesson at full size."""
    size = like.shape[-2:]
    flow = np.stack([resize_flow(np.moveaxis(f, 0, 2), *size) for f in window.flow])
    trust = window.flow_trust.repeat(2, axis=2).repeat(2, axis=3)
    moved = torch.from_numpy(np.ascontiguousarray(np.moveaxis(flow, 3, 1)))
    return moved.to(like.device), torch.from_numpy(trust).to(like.device)


def distance(features: Tensor, wanted: Tensor) -> Tensor:
    """Return the mean absolute difference over the mean size of what is wanted."""
    return (features - wanted).abs().mean() / wanted.abs().mean().clamp_min(1e-6)


class StudentTrainer(Trainer):
    """The training run of a student."""

    def __init__(
        self,
        config: TrainConfig,
        student: Student,
        lessons: Path,
        folder: Path,
        teaching: Teaching | None = None,
    ) -> None:
        """Set up the run.

        Args:
            config: Everything that decides the result.
            student: The network, its weights initialised.
            lessons: Where `restore.training.lessons.make_lessons` kept them.
            folder: Where checkpoints are kept and found.
            teaching: How much it listens to its teacher; None trains without one.

        Raises:
            UsageError: If there are no lessons.
        """
        self.lessons = lessons
        model = OnHyperframes(student)
        if teaching is not None:
            features = LessonDataset(lessons, config)[0][0]
            assert isinstance(features, Lesson)
            if features.features is None:
                raise UsageError(f"{lessons}: these lessons were made without a teacher")
            model = Pupil(student, features.features.shape[1])
        super().__init__(config, model, None, folder)
        self.objective = StudentObjective(config, self.device, teaching or Teaching(), model)

    def dataset(self) -> LessonDataset:
        """Return the lessons from the current step on."""
        start, rank, world = self.step, self.rank, self.world
        return LessonDataset(self.lessons, self.config, start=start, rank=rank, world=world)
