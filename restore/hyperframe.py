"""The hyperframe: aligned pictures side by side on the channel axis.

`T` slots of 8 channels each, `(B, T*8, H, W)`:

| channel | content |
| --- | --- |
| 0-2 | RGB, nominal [0, 1] |
| 3 | time: signed offset from the reference in frames / 3, constant |
| 4 | confidence, 1 = trust |
| 5-7 | σ of the noise in R, G, B |

The reference is the slot with time 0. A missing neighbour (end of the clip, cut) is absent. A
picture that was already denoised is a slot like any other with its own, smaller σ. Training and
inference use the same `pack`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from restore.align import Aligner, View, half_variance, warp_full
from restore.align.confidence import confidence, residual_ratio

Array = np.ndarray

SLOT = 8
"""Channels of a slot."""
TIME_UNIT = 3.0
"""Frames that make a time of 1."""
RESIDUAL_NOISE = 1 / 3
"""σ of a denoised picture over that of its noisy original, as told to the network. A fixed rule,
not a measurement: the network learns in training what it is worth."""


@dataclass(frozen=True)
class Slot:
    """One picture of the hyperframe, aligned to the reference."""

    image: Array
    """Shape (H, W, 3), float32 RGB."""
    time: int
    """Offset from the reference in frames."""
    sigma: Array
    """Shape (H, W, 3), float32, range [0, 1]."""
    confidence: Array | None = None
    """Shape (H, W), float32; None = trusted everywhere (the reference)."""
    sigma_scale: Array | float = 1.0
    """Factor on sigma: a number or shape (H, W)."""


def pack(slots: Sequence[Slot], out: Array | None = None) -> Array:
    """Lay slots out as a hyperframe.

    Args:
        slots: One or more slots of the same size, exactly one of them with time 0.
        out: Buffer of shape (T*8, H, W), float32, to be written to; allocated if None.

    Returns:
        Shape (T*8, H, W), float32.

    Raises:
        ValueError: If there is not exactly one reference, or sizes or types differ.
    """
    if sum(slot.time == 0 for slot in slots) != 1:
        raise ValueError(f"one slot must have time 0, got {[slot.time for slot in slots]}")
    height, width = slots[0].image.shape[:2]
    if any(slot.image.shape != (height, width, 3) for slot in slots):
        raise ValueError(f"slots differ in size: {[slot.image.shape for slot in slots]}")
    # OpenCV would write to a copy of the buffer instead, and say nothing.
    if any(slot.image.dtype != np.float32 or slot.sigma.dtype != np.float32 for slot in slots):
        raise ValueError("slots must hold float32")
    if out is None:
        out = np.empty((len(slots) * SLOT, height, width), np.float32)
    for index, slot in enumerate(slots):
        write_slot(slot, out[index * SLOT : (index + 1) * SLOT])
    return out


def write_slot(slot: Slot, out: Array) -> None:
    """Write one slot to its 8 channels of a hyperframe, shape (8, H, W), float32."""
    cv2.split(slot.image, list(out[:3]))
    out[3] = slot.time / TIME_UNIT
    out[4] = 1.0 if slot.confidence is None else slot.confidence
    cv2.split(slot.sigma, list(out[5:8]))
    if isinstance(slot.sigma_scale, np.ndarray) or slot.sigma_scale != 1.0:
        out[5:8] *= slot.sigma_scale


def unpack(hyperframe: Array) -> list[Slot]:
    """Take a hyperframe (T*8, H, W) apart into its slots; the inverse of `pack`.

    Raises:
        ValueError: If the channel count is not a multiple of 8.
    """
    if hyperframe.ndim != 3 or hyperframe.shape[0] % SLOT:
        raise ValueError(f"a hyperframe is (T*{SLOT}, H, W), got {hyperframe.shape}")
    slots = []
    for part in np.split(hyperframe, hyperframe.shape[0] // SLOT):
        time = round(float(part[3, 0, 0]) * TIME_UNIT)
        image, sigma = (np.ascontiguousarray(np.moveaxis(p, 0, 2)) for p in (part[:3], part[5:8]))
        slots.append(Slot(image, time, sigma, np.ascontiguousarray(part[4])))
    return slots


def choose(slots: int, behind: int, ahead: int, *, feedback: bool) -> list[int]:
    """Choose the neighbours of a reference: the nearest frames that exist, later ones first.

    Args:
        slots: Slots of the hyperframe, T, the reference included.
        behind: Frames of the shot before the reference.
        ahead: Frames of the shot after it, as far as they are known.
        feedback: Whether one slot is taken by the previous output.

    Returns:
        Offsets of the noisy neighbours in rising order; fewer than asked for where the shot ends.
    """
    offsets = [*range(-behind, 0), *range(1, ahead + 1)]
    nearest = sorted(offsets, key=lambda offset: (abs(offset), offset < 0))
    return sorted(nearest[: max(slots - 1 - (feedback and slots > 1), 0)])


def gather(
    views: Sequence[View], reference: int, offsets: Sequence[int], sigma: Array, aligner: Aligner
) -> list[Slot]:
    """Align the chosen neighbours to the reference.

    Args:
        views: Linked frames of one shot.
        reference: Index of the frame to be restored.
        offsets: Neighbours as offsets from the reference.
        sigma: σ map of the reference, shape (H, W, 3).
        aligner: How to align.

    Returns:
        Slots in the order of time, the reference among them.
    """
    variance = half_variance(sigma)
    slots = [Slot(views[reference].image, 0, sigma)]
    for offset in offsets:
        aligned = aligner.align(views, reference, reference + offset, variance)
        shrink = np.sqrt(aligned.energy)
        slots.append(Slot(aligned.image, offset, sigma, aligned.confidence, shrink))
    return sorted(slots, key=lambda slot: slot.time)


def reference_index(slots: Array) -> int:
    """Return which slot is the reference, from slots (T, 8, H, W)."""
    return int(np.abs(slots[:, 3, 0, 0]).argmin())


def feed_back(denoised: Array, reference: View, previous: View, sigma: Array) -> Slot:
    """Make a slot of the previous output: the cheapest memory of everything before.

    It goes in front of the other slots. Its alignment is judged like that of a noisy neighbour,
    only against less noise.

    Args:
        denoised: The previous frame, restored, shape (H, W, 3).
        reference: The frame to be restored, linked to the previous one.
        previous: The previous frame.
        sigma: σ map of the reference, shape (H, W, 3).

    Raises:
        ValueError: If the two frames are not linked.
    """
    if reference.to_previous is None or previous.to_next is None:
        raise ValueError("the reference has not been linked to the previous frame")
    motion, back = reference.to_previous, previous.to_next
    image = warp_full(denoised, motion)
    kept = np.full(motion.flow.shape[:2], RESIDUAL_NOISE**2, np.float32)
    ratio = residual_ratio(reference.image, image, half_variance(sigma), kept)
    trust = confidence(ratio, motion.flow, None if motion.uniform else back.flow)
    trust = cv2.resize(trust, image.shape[1::-1], interpolation=cv2.INTER_LINEAR)
    return Slot(image, -1, sigma, trust, RESIDUAL_NOISE)
