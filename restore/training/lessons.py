"""Lessons: training batches of a single-frame student, labelled once by its teacher and kept.

The teacher sees windows of aligned frames, its student one frame of each. Making the windows and
running the teacher costs more than a step of a small student; kept on disk, the answers serve many
passes, and runs with other seeds or without the teacher see the very same pictures.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from restore.analyse import estimate_noise, told
from restore.data import Sample
from restore.data.datasets import ClipDataset
from restore.errors import RestoreError, UsageError
from restore.hyperframe import SLOT, reference_index
from restore.models.blocks import Trunk
from restore.training.config import TrainConfig
from restore.training.windows import Batches, Clips, Window
from restore.weights.manifest import write_whole

Array = np.ndarray

EVERY = 100
"""Batches between two lines of progress."""


@dataclass(frozen=True, kw_only=True)
class Lesson(Window):
    """One frame of every clip of a batch; the hyperframe holds nothing but the reference."""

    flow: Array
    """To the frame before, shape (B, 2, H/2, W/2), pixels of that size."""
    flow_trust: Array
    """Confidence of that flow, shape (B, 1, H/2, W/2); zero for the first frame of a clip."""
    taught: Array | None = None
    """The teacher's pictures, shape (B, 3, H, W); None without a teacher."""
    features: Array | None = None
    """Its features, shape (B, C, H/4, W/4)."""


class WithUnlabelled:
    """Clips of which a share is real footage: its noise is measured, its clean picture unknown."""

    def __init__(self, labelled: Clips, unlabelled: ClipDataset, share: float) -> None:
        """Mix two sets of clips."""
        self.labelled, self.unlabelled, self.share = labelled, unlabelled, share

    def sample(self, step: int, index: int, *, frames: int) -> Sample:
        """Return the clip that belongs to a step and an index; unlabelled ones are clean of NaN."""
        rng = np.random.default_rng([self.unlabelled.seed, step, index, 1])
        if rng.random() >= self.share:
            return self.labelled.sample(step, index, frames=frames)
        real = self.unlabelled.sample(step, index, frames=frames).clean
        return Sample(np.full_like(real, np.nan), real, told(estimate_noise(list(real))))


def make_lessons(
    folder: Path,
    batches: Batches,
    teacher: nn.Module | None,
    *,
    about: dict[str, Any],
    count: int,
    say: Callable[[str], None],
) -> None:
    """Label batches and keep them, one file each; those that are there already stay.

    Args:
        folder: Where to keep them.
        batches: Windows of the frames that the teacher sees.
        teacher: A network with a `Trunk`; None keeps the pictures without labels.
        about: What decides the result; kept beside, so that a folder never mixes two kinds.
        count: How many batches.
        say: Takes the lines of progress.

    Raises:
        UsageError: If the folder holds lessons of another kind, or the teacher has no trunk.
    """
    folder.mkdir(parents=True, exist_ok=True)
    card, text = folder / "about.json", json.dumps(about, indent=1, sort_keys=True)
    if card.is_file() and card.read_text() != text:
        raise UsageError(f"{folder}: holds lessons made with other settings; name another folder")
    write_whole(card, text.encode())
    listener = Listener(teacher) if teacher is not None else None
    for number in range(count):
        path = lesson_file(folder, number)
        if not path.is_file():
            with torch.inference_mode():
                write_whole(path, _labelled(batches[number], listener))
        if (number + 1) % EVERY == 0 or number + 1 == count:
            say(f"lesson {number + 1}/{count}")


def lesson_file(folder: Path, number: int) -> Path:
    """Return where a batch of lessons is kept."""
    return folder / f"{number:06d}.npz"


class Listener:
    """Runs a network and keeps what its trunk yields."""

    def __init__(self, network: nn.Module) -> None:
        """Listen to a network.

        Raises:
            UsageError: If it has no trunk.
        """
        self.network, self.features = network, torch.empty(0)
        trunk_of(network).register_forward_hook(self._keep)

    def _keep(self, module: nn.Module, inputs: object, output: Tensor) -> None:
        # Features serve as a hint, not as a picture: half their size is enough.
        self.features = functional.avg_pool2d(output, 2)


def trunk_of(network: nn.Module) -> Trunk:
    """Return the part of a network that yields its features.

    Raises:
        UsageError: If it has none.
    """
    trunk = getattr(network, "trunk", None)
    if not isinstance(trunk, Trunk):
        raise UsageError(f"teacher: {type(network).__name__} has no trunk to learn features from")
    return trunk


def _labelled(windows: list[Window], listener: Listener | None) -> bytes:
    """Let the teacher look at one batch; return it as the content of a file."""
    rows: dict[str, list[Array]] = {}
    previous: Array | None = None
    for window in windows:
        if window.links:
            assert previous is not None, "the first frame of a clip has no frame before"
            window.fill(previous)
        slots = window.slots
        reference = slots[:, reference_index(slots[0])]
        parts = {
            "noisy": reference[:, :3].astype(np.float16),
            "sigma": reference[:, 5:, ::2, ::2].astype(np.float16),
            "clean": np.rint(np.nan_to_num(window.clean) * 255).astype(np.uint8),
            "known": np.isfinite(window.clean).all((1, 2, 3)),
        } | _motion(window)
        previous = reference[:, :3]
        if listener is not None:
            taught = listener.network(torch.from_numpy(window.hyperframe)).numpy()
            parts["taught"], previous = taught.astype(np.float16), taught
            parts["features"] = listener.features.numpy().astype(np.float16)
        for key, value in parts.items():
            rows.setdefault(key, []).append(value)
    buffer = io.BytesIO()
    np.savez(buffer, **{key: np.stack(values) for key, values in rows.items()})  # type: ignore[arg-type]
    return buffer.getvalue()


def _motion(window: Window) -> dict[str, Array]:
    batch, _, height, width = window.clean.shape
    if not window.links:
        flow = np.zeros((batch, 2, height // 2, width // 2), np.float16)
        return {"flow": flow, "trust": flow[:, :1]}
    motions = [link.reference.to_previous for link in window.links]
    flow = np.stack([np.moveaxis(motion.flow, 2, 0) for motion in motions if motion is not None])
    trust = window.trust[:, :, ::2, ::2].astype(np.float16)
    return {"flow": flow.astype(np.float16), "trust": trust}


class LessonDataset:
    """Batches read back: all of them in an order of their own in every pass."""

    def __init__(
        self, folder: Path, config: TrainConfig, *, start: int = 0, rank: int = 0, world: int = 1
    ) -> None:
        """Choose the lessons.

        Args:
            folder: Where `make_lessons` kept them.
            config: The run, whose seed decides the order.
            start: First step.
            rank: Number of this process.
            world: How many processes share the lessons.

        Raises:
            UsageError: If there are none.
        """
        self.folder, self.config, self.start = folder, config, start
        self.rank, self.world = rank, world
        self.count = len(list(folder.glob("*.npz")))
        if not self.count:
            raise UsageError(f"{folder}: holds no lessons")

    def __len__(self) -> int:
        """Return the number of batches left: one for each step and accumulation."""
        return (self.config.steps - self.start) * self.config.accumulate

    def __getitem__(self, position: int) -> list[Window]:
        """Read the batch at a position counted from the first step.

        Raises:
            IndexError: Past the end.
            RestoreError: If the file is damaged.
        """
        if not 0 <= position < len(self):
            raise IndexError(position)
        number = (self.start * self.config.accumulate + position) * self.world + self.rank
        turn, index = divmod(number, self.count)
        order = np.random.default_rng([self.config.seed, turn]).permutation(self.count)
        path = lesson_file(self.folder, int(order[index]))
        try:
            with np.load(path) as stored:
                arrays = {key: stored[key] for key in stored.files}
        except (OSError, ValueError, KeyError) as error:
            raise RestoreError(f"{path}: damaged ({error}); remove it and make it again") from None
        frames = len(arrays["noisy"])
        return [_lesson({key: value[i] for key, value in arrays.items()}) for i in range(frames)]


def _lesson(stored: dict[str, Array]) -> Lesson:
    full = {key: value.astype(np.float32) for key, value in stored.items()}
    batch, _, height, width = full["noisy"].shape
    hyperframe = np.empty((batch, SLOT, height, width), np.float32)
    hyperframe[:, :3] = full["noisy"]
    hyperframe[:, 3:4], hyperframe[:, 4:5] = 0.0, 1.0
    hyperframe[:, 5:] = full["sigma"].repeat(2, axis=2).repeat(2, axis=3)
    clean, taught = full["clean"] * np.float32(1 / 255), full.get("taught")
    known = stored["known"]
    if taught is not None:
        clean[~known] = taught[~known]
    return Lesson(
        hyperframe,
        clean,
        (),
        flow=full["flow"],
        flow_trust=full["trust"],
        taught=taught,
        features=full.get("features"),
    )
