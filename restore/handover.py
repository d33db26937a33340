"""What the frames done so far leave to the frames to come, and how it is kept on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from restore.analyse import CutDetector, NoiseCurve

Array = np.ndarray


@dataclass(frozen=True)
class Handover:
    """All that `restore.sequence.restore_shots` needs to go on after a frame, but the frames.

    With the handover after frame n - 1, and the frames from n - `behind` on, it gives the same
    frames n, n + 1, … as if it had never stopped.
    """

    age: int = 0
    """Frames of the present shot so far; 0 before the first frame of all."""
    levels: tuple[float, ...] = ()
    """Mean σ of each shot so far, range [0, 1]."""
    curves: tuple[NoiseCurve, ...] = ()
    """The noise of the last frames of the shot, the newest last."""
    previous: Array | None = None
    """The last frame, restored: shape (H, W, 3), float32."""
    detector: CutDetector | None = None
    """Has seen the last frame and none after it."""

    @property
    def behind(self) -> int:
        """Number of earlier frames that are needed again."""
        return len(self.curves)

    @property
    def starts_shot(self) -> bool:
        """Whether the frame after which this is left is the first of a shot."""
        return self.age == 1

    def save(self, path: Path) -> None:
        """Write an uncompressed .npz; what is read back is equal to the bit."""
        arrays: dict[str, Array] = {
            "age": np.array(self.age),
            "levels": np.array(self.levels, np.float64),
            "curves": np.array([(c.slope, c.intercept) for c in self.curves]).reshape(-1, 2, 3),
        }
        if self.previous is not None:
            arrays["previous"] = self.previous
        if self.detector is not None:
            arrays |= {f"detector_{k}": v for k, v in self.detector.state().items()}
        with path.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: Path) -> Handover:
        """Read what `save` wrote.

        Raises:
            OSError, ValueError, KeyError, BadZipFile: If the file is missing or damaged.
        """
        with np.load(path, allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
        state = {k.removeprefix("detector_"): v for k, v in stored.items() if "detector_" in k}
        return cls(
            age=int(stored["age"]),
            levels=tuple(float(level) for level in stored["levels"]),
            curves=tuple(
                NoiseCurve(tuple(slope), tuple(start)) for slope, start in stored["curves"]
            ),
            previous=stored.get("previous"),
            detector=CutDetector.from_state(state) if state else None,
        )
