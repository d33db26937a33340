"""Look at a clip before restoring it: cuts and noise level."""

from restore.analyse.estimate import estimate_noise
from restore.analyse.noise import NoiseCurve, noise_map

__all__ = ["NoiseCurve", "estimate_noise", "noise_map"]
