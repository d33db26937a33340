"""Look at a clip before restoring it: cuts and noise level."""

from restore.analyse.noise import NoiseCurve, noise_map

__all__ = ["NoiseCurve", "noise_map"]
