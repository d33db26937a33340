"""The toolkit as a function of an array of frames, for benchmarks that call their candidates.

    RESTORE_MODEL=denoise-awgn python … --product-call as_peer:denoised
    RESTORE_MODEL=upscale-x4 python … --product-call as_peer:enlarged

With this folder on PYTHONPATH. RESTORE_MODEL names other weights than the preset's, RESTORE_PRESET
another preset.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np

from restore import restore_frames


def denoised(frames: np.ndarray, sigma: float) -> np.ndarray:
    """Restore a clip whose noise level is known.

    Args:
        frames: Shape (T, H, W, 3), RGB, range 0 to 255: uint8, or float32 that may leave the range.
        sigma: Noise level in 0-255 units.

    Returns:
        The restored clip, same shape and type.
    """
    pictures = (frame.astype(np.float32) / 255 for frame in frames)
    model, preset = os.environ.get("RESTORE_MODEL"), os.environ.get("RESTORE_PRESET", "balanced")
    found = restore_frames(pictures, sigma=sigma / 255, model=model, preset=preset)
    return _as_stored(found, frames)


def enlarged(frames: np.ndarray, scale: int) -> np.ndarray:
    """Enlarge a clip.

    Args:
        frames: Shape (T, H, W, 3), RGB, range 0 to 255, uint8.
        scale: 2 or 4.

    Returns:
        Shape (T, scale * H, scale * W, 3), same type.
    """
    pictures = (frame.astype(np.float32) / 255 for frame in frames)
    model, preset = os.environ.get("RESTORE_MODEL"), os.environ.get("RESTORE_PRESET", "balanced")
    return _as_stored(restore_frames(pictures, scale=scale, model=model, preset=preset), frames)


def _as_stored(found: Iterable[np.ndarray], frames: np.ndarray) -> np.ndarray:
    scaled = np.stack([clean * 255 for clean in found])
    if frames.dtype == np.uint8:
        return np.rint(scaled).astype(np.uint8)
    return scaled.astype(frames.dtype)
