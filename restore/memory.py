"""The previous enlarged output as part of the next hyperframe: the cheapest source of detail.

An upscaler's hyperframe has `T` slots and, behind them, the previous output, warped along the
flow and folded to the size of the input (space to depth). It takes as many channels as a whole
number of slots has, so that a hyperframe stays a multiple of 8 channels:

| channel | content |
| --- | --- |
| 0 | confidence; 0 everywhere where there is no previous output |
| 1 to 3·scale² | R, G, B in the order of `torch.nn.PixelUnshuffle` |
| the rest | 0 |
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from restore.align import FineAligner, View, half_variance
from restore.align.fine import at_half_size, warp_fine
from restore.hyperframe import RESIDUAL_NOISE, SLOT, Slot, pack

Array = np.ndarray


def memory_slots(scale: int) -> int:
    """Return how many slots' worth of channels the memory takes; none at scale 1."""
    return 0 if scale == 1 else -(-(1 + 3 * scale * scale) // SLOT)


def pack_with_memory(slots: Sequence[Slot], scale: int, memory: Array | None) -> Array:
    """Lay slots and memory out as an upscaler's hyperframe.

    Args:
        slots: As `restore.hyperframe.pack` takes them.
        scale: Enlargement, from 2 up.
        memory: From `remember`; None where there is no previous output.

    Returns:
        Shape ((T + memory_slots) * 8, H, W), float32.
    """
    height, width = slots[0].image.shape[:2]
    count = len(slots) * SLOT
    out = np.empty((count + memory_slots(scale) * SLOT, height, width), np.float32)
    pack(slots, out[:count])
    out[count:] = 0.0 if memory is None else memory
    return out


def remember(enlarged: Array, reference: View, previous: View, sigma: Array, scale: int) -> Array:
    """Fold the previous output, aligned to the reference.

    Args:
        enlarged: The previous frame, enlarged, shape (scale * H, scale * W, 3).
        reference: The frame to be enlarged, linked to the previous one by a `FineAligner`.
        previous: The previous frame.
        sigma: σ map of the reference, shape (H, W, 3).
        scale: Enlargement.

    Returns:
        Shape (memory_slots * 8, H, W), float32.

    Raises:
        ValueError: If the two frames are not linked.
    """
    if reference.to_previous is None or previous.to_next is None:
        raise ValueError("the reference has not been linked to the previous frame")
    height, width = reference.image.shape[:2]
    warped = warp_fine(enlarged, reference.to_previous)
    seen = reduce(warped, scale)
    motion = at_half_size(reference.to_previous, height, width)
    back = at_half_size(previous.to_next, height, width)
    kept = np.full(motion.flow.shape[:2], RESIDUAL_NOISE**2, np.float32)
    trust = FineAligner.trust(reference, seen, motion, back, half_variance(sigma), kept)
    out = np.zeros((memory_slots(scale) * SLOT, height, width), np.float32)
    out[0] = cv2.resize(trust, (width, height), interpolation=cv2.INTER_LINEAR)
    folded = out[1 : 1 + 3 * scale * scale].reshape(3, scale, scale, height, width)
    parts = warped.reshape(height, scale, width, scale, 3)
    folded[:] = parts.transpose(4, 1, 3, 0, 2)
    return out


def enlarge(image: Array, scale: int) -> Array:
    """Return a picture (H, W, C) enlarged bicubically; at scale 1 itself."""
    if scale == 1:
        return image
    size = (image.shape[1] * scale, image.shape[0] * scale)
    return cv2.resize(image, size, interpolation=cv2.INTER_CUBIC)


def reduce(image: Array, scale: int) -> Array:
    """Return the mean over squares of scale pixels, (H, W, C) -> smaller; at scale 1 itself."""
    if scale == 1:
        return image
    size = (image.shape[1] // scale, image.shape[0] // scale)
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA)
