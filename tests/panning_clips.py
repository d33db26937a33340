"""A small training set and the settings that go with it."""

from typing import Any

import numpy as np
from motion_scenes import noisy, panning

from restore.analyse import NoiseCurve
from restore.data.degrade import Sample

SMALL: dict[str, Any] = {
    "name": "small",
    "model": "denoiser-tiny",
    "recipe": "awgn",
    "patch": 32,
    "batch": 2,
    "unroll": 2,
    "slots": (1, 3),
    "slot_weights": (0.3, 0.7),
    "steps": 20,
    "warmup": 3,
    "lpips": 0.0,
    "pixel_phase": 0.5,
    "workers": 0,
    "device": "cpu",
}


class Panning:
    """Clips of a moving camera under white noise; picklable, keyed by step and index."""

    def __init__(self, same: bool = False, broken: tuple[int, ...] = ()) -> None:
        self.same, self.broken = same, broken

    def sample(self, step: int, index: int, *, frames: int) -> Sample:
        rng = np.random.default_rng([7, 0 if self.same else step, index])
        x, y = rng.uniform(-3, 3, 2)
        clean = np.stack(panning(frames, (x, y), 32, 32))
        dirty = np.stack([noisy(f, 25, int(rng.integers(2**31))) for f in clean])
        if step in self.broken:
            dirty[:, 0, 0] = np.nan
        return Sample(clean, dirty, NoiseCurve.white(25 / 255))
