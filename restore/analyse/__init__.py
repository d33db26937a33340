"""Look at a clip before restoring it: cuts and noise level."""

from restore.analyse.estimate import UNSEEN, estimate_noise, told
from restore.analyse.noise import NoiseCurve, noise_map
from restore.analyse.shots import CutDetector, find_cuts

__all__ = [
    "UNSEEN",
    "CutDetector",
    "NoiseCurve",
    "estimate_noise",
    "find_cuts",
    "noise_map",
    "told",
]
