"""Training batches: clips degraded, aligned and packed exactly as at run time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from restore.align import Aligner, GuidedAligner, View, aligner_for
from restore.analyse import noise_map
from restore.data.degrade import Sample
from restore.hyperframe import SLOT, TIME_UNIT, Slot, choose, feed_back, gather, pack, write_slot
from restore.memory import memory_slots, pack_with_memory, remember
from restore.training.config import TrainConfig
from restore.training.guides import Guides
from restore.window import reach

Array = np.ndarray


class Clips(Protocol):
    """Where degraded clips come from: `restore.data.datasets.ClipDataset`."""

    def sample(self, step: int, index: int, *, frames: int) -> Sample:
        """Return the clip that belongs to a step and an index, the same whoever asks."""
        ...


class Batches(Protocol):
    """The batches of a run, counted from its next step."""

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def __getitem__(self, position: int) -> list[Window]:
        """Return the windows of one batch in the order of time."""
        ...


@dataclass(frozen=True)
class Link:
    """What ties one clip's reference to its previous frame."""

    reference: View
    previous: View
    sigma: Array
    fed: bool
    """Whether the previous output is part of the hyperframe; else it is only compared with."""


@dataclass(frozen=True)
class Window:
    """One reference frame of every clip of a batch."""

    hyperframe: Array
    """Shape (B, T*8, H, W); with feedback its first slot is still empty. Where the picture is
    enlarged the memory stands behind the slots, empty as well."""
    clean: Array
    """Shape (B, 3, scale * H, scale * W)."""
    links: tuple[Link, ...]
    """One for each clip, or none where nothing is fed back or compared."""
    scale: int = 1

    @property
    def slots(self) -> Array:
        """The slots (B, T, 8, H, W) without the memory."""
        count = self.hyperframe.shape[1] - SLOT * memory_slots(self.scale)
        size = self.hyperframe.shape[-2:]
        return self.hyperframe[:, :count].reshape(len(self.hyperframe), -1, SLOT, *size)

    @property
    def trust(self) -> Array:
        """Confidence of the previous outputs, or else of the previous frames, (B, 1, H, W)."""
        if self.scale > 1:
            at = self.hyperframe.shape[1] - SLOT * memory_slots(self.scale)
            return self.hyperframe[:, at : at + 1]
        times = self.slots[0, :, 3, 0, 0] * TIME_UNIT
        return self.slots[:, int(np.argmin(np.abs(times + 1))), 4:5]

    def fill(self, previous: Array) -> None:
        """Write the previous outputs, shape of `clean`, to the first slot or the memory.

        Nothing is written where they are not fed back.
        """
        if not all(link.fed for link in self.links):
            return
        for target, image, link in zip(self.hyperframe, previous, self.links, strict=True):
            picture = np.ascontiguousarray(np.moveaxis(image, 0, 2))
            views = link.reference, link.previous
            if self.scale == 1:
                write_slot(feed_back(picture, *views, link.sigma), target[:SLOT])
            else:
                memory = remember(picture, *views, link.sigma, self.scale)
                target[-len(memory) :] = memory


@dataclass(frozen=True)
class Plan:
    """What a step has in common for all its clips, drawn from the seed and the step alone."""

    slots: int
    feedback: bool
    behind: int
    """Frames before the first reference."""
    frames: int
    guided: bool = False
    """Whether motion is searched as in a second pass."""

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
        guided = bool(rng.random() < config.guided)
        return cls(slots, feedback, behind, behind + config.unroll + ahead, guided)


class WindowDataset:
    """Map a step to its batch: windows of consecutive references, in the order of time.

    The clip begins 0 to T - 1 frames before the first reference and ends 0 to T // 2 frames after
    the last, so that both ends of a shot are trained like the rest.
    """

    def __init__(self, clips: Clips, config: TrainConfig, *, rank: int = 0, start: int = 0) -> None:
        """Set the source, the configuration, the process's rank and the first step."""
        self.clips, self.config, self.rank, self.start = clips, config, rank, start
        self.aligner = aligner_for(config.scale)
        self.guides = Guides()

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
        return [_stack(refs, self.config.scale) for refs in zip(*clips, strict=True)]

    def windows(self, step: int, index: int, plan: Plan) -> list[tuple[Array, Array, Link | None]]:
        """Align and pack every reference of one clip."""
        sample = self.clips.sample(step, index, frames=plan.frames)
        guided = plan.guided and plan.slots > 1
        aligner = GuidedAligner() if guided else self.aligner
        guides = self.guides(sample) if guided else sample.noisy
        views = [aligner.view(*pair) for pair in zip(sample.noisy, guides, strict=True)]
        if plan.slots > 1:
            noise = 0.0 if guided else sample.curve.mean_sigma
            for previous, current in pairwise(views):
                aligner.link(previous, current, noise)
        return list(self._references(sample, views, plan, aligner))

    def _references(
        self, sample: Sample, views: list[View], plan: Plan, aligner: Aligner
    ) -> Iterator[tuple[Array, Array, Link | None]]:
        for number in range(self.config.unroll):
            reference = plan.behind + number
            feedback = plan.feedback and number > 0
            ahead = min(reach(plan.slots), len(views) - 1 - reference)
            enlarging = self.config.scale > 1  # then the memory takes no slot
            takes_slot = feedback and not enlarging
            offsets = choose(plan.slots, reference, ahead, feedback=takes_slot)
            sigma = noise_map(sample.curve, views[reference].image)
            slots = gather(views, reference, offsets, sigma, aligner)
            link = None
            if takes_slot:
                slots.insert(0, Slot(np.zeros_like(sigma), -1, sigma))
            compared = number > 0 and plan.slots > 1 and self.config.temporal > 0 and not enlarging
            if feedback or compared:
                link = Link(views[reference], views[reference - 1], sigma, feedback)
            packed = pack_with_memory(slots, self.config.scale, None) if enlarging else pack(slots)
            yield packed, np.moveaxis(sample.clean[reference], 2, 0), link


def _stack(parts: tuple[tuple[Array, Array, Link | None], ...], scale: int) -> Window:
    frames, clean, links = zip(*parts, strict=True)
    kept = tuple(link for link in links if link is not None)
    return Window(np.stack(frames), np.stack(clean), kept, scale)
