"""Pictures as a first pass leaves them, for the second pass to search motion in.

To restore every neighbour of every training window in full would cost more than the training. The
single-frame student is cheap and errs in the same way, only more: its answer is drawn towards the
clean picture.
"""

from __future__ import annotations

import numpy as np

from restore.align import Aligner
from restore.data.degrade import Sample
from restore.engine import Engine, load_engine
from restore.sequence import restore_shot

Array = np.ndarray

STUDENT = "edge"
SHARE = 0.7
"""Error of a first pass over that of the student: it is 2 to 3 dB better."""


class Guides:
    """Makes guides; the student is loaded with the first, in the process that makes them."""

    def __init__(self) -> None:
        """Load nothing yet: this object travels to the data processes."""
        self._engine: Engine | None = None

    def __call__(self, sample: Sample) -> list[Array]:
        """Return a picture (H, W, 3) for each frame of a sample."""
        if self._engine is None:
            self._engine = load_engine(STUDENT, threads=1, device="cpu")
        restored = restore_shot(
            sample.noisy, self._engine, sample.curve, slots=1, aligner=Aligner()
        )
        return [
            clean + SHARE * (picture - clean)
            for picture, clean in zip(restored, sample.clean, strict=True)
        ]
