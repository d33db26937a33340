"""Training batches: clips degraded, aligned and packed exactly as at run time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from restore.align import Aligner, View
from restore.analyse import noise_map
from restore.data.degrade import Sample
from restore.hyperframe import SLOT, Slot, choose, feed_back, gather, pack, write_slot
from restore.sequence import reach
from restore.training.config import TrainConfig

Array = np.ndarray


class Clips(Protocol):
    """Where degraded clips come from: `restore.data.datasets.ClipDataset`."""

    def sample(self, step: int, index: int, *, frames: int) -> Sample:
        """Return the clip that belongs to a step and an index, the same whoever asks."""
        ...


@dataclass(frozen=True)
class Link:
    """What feeding one clip's previous output back needs."""

    reference: View
    previous: View
    sigma: Array


@dataclass(frozen=True)
class Window:
    """One reference frame of every clip of a batch."""

    hyperframe: Array
    """Shape (B, T*8, H, W); with feedback its first slot is still empty."""
    clean: Array
    """Shape (B, 3, H, W)."""
    links: tuple[Link, ...]
    """One for each clip, or none without feedback."""

    def fill(self, previous: Array) -> None:
        """Write the previous outputs, shape (B, 3, H, W), to the first slot."""
        for target, image, link in zip(self.hyperframe, previous, self.links, strict=True):
            picture = np.ascontiguousarray(np.moveaxis(image, 0, 2))
            slot = feed_back(picture, link.reference, link.previous, link.sigma)
            write_slot(slot, target[:SLOT])


@dataclass(frozen=True)
class Plan:
    """What a step has in common for all its clips, drawn from the seed and the step alone."""

    slots: int
    feedback: bool
    behind: int
    """Frames before the first reference."""
    frames: int

    @classmethod
    def draw(cls, config: TrainConfig, step: int) -> Plan:
        """Draw the plan of a step."""
        rng = np.random.default_rng([config.seed, step])
        shares = np.asarray(config.slot_weights) / sum(config.slot_weights)
        slots = int(rng.choice(config.slots, p=shares))
        feedback = bool(rng.random() < config.feedback) and slots > 1
        ahead = reach(slots)
        if rng.random() < config.cut_short:
            ahead = int(rng.integers(0, ahead + 1))
        # Where the future is short, the slots reach further back: up to slots - 1 frames.
        behind = int(rng.integers(0, slots - ahead))
        return cls(slots, feedback, behind, behind + config.unroll + ahead)


class WindowDataset:
    """Map a step to its batch: windows of consecutive references, in the order of time.

    The clip begins 0 to T - 1 frames before the first reference and ends 0 to T // 2 frames after
    the last, so that both ends of a shot are trained like the rest.
    """

    def __init__(self, clips: Clips, config: TrainConfig, *, rank: int = 0, start: int = 0) -> None:
        """Set the source, the configuration, the process's rank and the first step."""
        self.clips, self.config, self.rank, self.start = clips, config, rank, start
        self.aligner = Aligner()

    def __len__(self) -> int:
        """Return the number of batches left: one for each step and accumulation."""
        return (self.config.steps - self.start) * self.config.accumulate

    def __getitem__(self, position: int) -> list[Window]:
        """Build the batch at a position counted from the first step.

        Raises:
            IndexError: Past the end.
        """
        if not 0 <= position < len(self):
            raise IndexError(position)
        step, part = divmod(position, self.config.accumulate)
        step += self.start
        plan = Plan.draw(self.config, step)
        first = (self.rank * self.config.accumulate + part) * self.config.batch
        clips = [self.windows(step, first + i, plan) for i in range(self.config.batch)]
        return [_stack(refs) for refs in zip(*clips, strict=True)]

    def windows(self, step: int, index: int, plan: Plan) -> list[tuple[Array, Array, Link | None]]:
        """Align and pack every reference of one clip."""
        sample = self.clips.sample(step, index, frames=plan.frames)
        views = [View.of(image) for image in sample.noisy]
        if plan.slots > 1:
            for previous, current in pairwise(views):
                self.aligner.link(previous, current, sample.curve.mean_sigma)
        return list(self._references(sample, views, plan))

    def _references(
        self, sample: Sample, views: list[View], plan: Plan
    ) -> Iterator[tuple[Array, Array, Link | None]]:
        for number in range(self.config.unroll):
            reference = plan.behind + number
            feedback = plan.feedback and number > 0
            ahead = min(reach(plan.slots), len(views) - 1 - reference)
            offsets = choose(plan.slots, reference, ahead, feedback=feedback)
            sigma = noise_map(sample.curve, views[reference].image)
            slots = gather(views, reference, offsets, sigma, self.aligner)
            link = None
            if feedback:
                slots.insert(0, Slot(np.zeros_like(sigma), -1, sigma))
                link = Link(views[reference], views[reference - 1], sigma)
            yield pack(slots), np.moveaxis(sample.clean[reference], 2, 0), link


def _stack(parts: tuple[tuple[Array, Array, Link | None], ...]) -> Window:
    frames, clean, links = zip(*parts, strict=True)
    kept = tuple(link for link in links if link is not None)
    return Window(np.stack(frames), np.stack(clean), kept)
