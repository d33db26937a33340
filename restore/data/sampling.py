"""Which frames of a shot make a training window: one small class for each way.

A sampler sees one shot only, so that no window ever crosses a cut. Every sampler returns
``frames`` strictly increasing indices into the shot; with no random generator it takes the window
in the centre (validation).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

IndexArray = npt.NDArray[np.int64]
EnergyArray = npt.NDArray[np.float32]


class Sampler(Protocol):
    """Choose the frames of a window."""

    def window(
        self,
        length: int,
        frames: int,
        rng: np.random.Generator | None = None,
        energy: EnergyArray | None = None,
    ) -> IndexArray:
        """Return indices into a shot.

        Args:
            length: Frames in the shot, at least ``frames``.
            frames: Frames wanted, from 1 up.
            rng: Source of randomness; None takes the centre.
            energy: (length - 1,) mean absolute difference between consecutive frames, if known.

        Returns:
            (frames,) strictly increasing, each in [0, length).

        Raises:
            ValueError: If the shot is too short.
        """
        ...


@dataclass(frozen=True)
class Consecutive:
    """Take consecutive frames."""

    def window(
        self,
        length: int,
        frames: int,
        rng: np.random.Generator | None = None,
        energy: EnergyArray | None = None,
    ) -> IndexArray:
        """Return a run of neighbours."""
        return _run(length, frames, 1, rng)


@dataclass(frozen=True)
class Strided:
    """Take every k-th frame, k drawn from ``strides``; shorter shots get the widest that fits."""

    strides: tuple[int, ...] = (1, 2, 3)
    """Candidates; the centre window uses the first."""

    def __post_init__(self) -> None:
        if not self.strides or min(self.strides) < 1:
            raise ValueError(f"strides must be numbers from 1 up, not {self.strides}")

    def window(
        self,
        length: int,
        frames: int,
        rng: np.random.Generator | None = None,
        energy: EnergyArray | None = None,
    ) -> IndexArray:
        """Return frames k apart."""
        wanted = self.strides[0] if rng is None else int(rng.choice(self.strides))
        widest = (length - 1) // (frames - 1) if frames > 1 else wanted
        return _run(length, frames, max(1, min(wanted, widest)), rng)


@dataclass(frozen=True)
class UniformSegments:
    """Cut the shot into equal segments and take one frame of each."""

    def window(
        self,
        length: int,
        frames: int,
        rng: np.random.Generator | None = None,
        energy: EnergyArray | None = None,
    ) -> IndexArray:
        """Return one frame per segment: a random one, or the middle one."""
        _check(length, frames)
        edges = np.arange(frames + 1, dtype=np.int64) * length // frames
        if rng is None:
            return (edges[:-1] + edges[1:] - 1) // 2
        return rng.integers(edges[:-1], edges[1:])


@dataclass(frozen=True)
class FullyRandom:
    """Take any frames of the shot, in order."""

    def window(
        self,
        length: int,
        frames: int,
        rng: np.random.Generator | None = None,
        energy: EnergyArray | None = None,
    ) -> IndexArray:
        """Return distinct frames in rising order."""
        if rng is None:
            return _run(length, frames, 1, None)
        _check(length, frames)
        return np.sort(rng.choice(length, frames, replace=False)).astype(np.int64)


@dataclass(frozen=True)
class MotionWeighted:
    """Take consecutive frames, windows with much motion more often.

    A window's chance is (its mean frame difference)^power, mixed with a uniform share so that
    still parts are seen as well.
    """

    power: float = 1.0
    uniform_share: float = 0.2

    def window(
        self,
        length: int,
        frames: int,
        rng: np.random.Generator | None = None,
        energy: EnergyArray | None = None,
    ) -> IndexArray:
        """Return a run of neighbours; without energies all runs are equally likely."""
        _check(length, frames)
        if rng is None or energy is None or frames == 1:
            return _run(length, frames, 1, rng)
        if len(energy) != length - 1:
            raise ValueError(f"{length} frames have {length - 1} energies, not {len(energy)}")
        summed = np.concatenate([[0.0], np.cumsum(energy, dtype=np.float64)])
        weight = np.maximum(summed[frames - 1 :] - summed[: length - frames + 1], 0) ** self.power
        total, count = weight.sum(), len(weight)
        even = np.full(count, 1 / count)
        chance = even
        if total > 0:
            chance = self.uniform_share * even + (1 - self.uniform_share) * weight / total
        return int(rng.choice(count, p=chance)) + np.arange(frames, dtype=np.int64)


def _run(length: int, frames: int, stride: int, rng: np.random.Generator | None) -> IndexArray:
    _check(length, frames)
    room = length - ((frames - 1) * stride + 1)
    start = room // 2 if rng is None else int(rng.integers(room + 1))
    return start + stride * np.arange(frames, dtype=np.int64)


def _check(length: int, frames: int) -> None:
    if not 1 <= frames <= length:
        raise ValueError(f"cannot take {frames} frames from a shot of {length}")


SAMPLERS: dict[str, Callable[..., Sampler]] = {
    "consecutive": Consecutive,
    "strided": Strided,
    "segments": UniformSegments,
    "random": FullyRandom,
    "motion": MotionWeighted,
}
"""Samplers by the name that a training configuration uses."""
