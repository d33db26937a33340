"""Frames as they are written: changed, enlarged, beside the original."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from restore.io import Frame, add_residual, from_rgb, to_rgb
from restore.memory import enlarge

Array = np.ndarray


def finished(
    frame: Frame, change: Array | None, *, factors: tuple[float, float], width: int, scale: int
) -> Frame:
    """Return a frame as it is written.

    Args:
        frame: As decoded.
        change: What is to be added to it, enlarged where that is asked for; None changes nothing.
        factors: Strength of the change in luma and in chroma.
        width: Above 0, the original is put on the left, each side that wide.
        scale: Enlargement.
    """
    if scale > 1:
        out = enlarged_frame(frame, change, factors, scale)
        before = enlarged_frame(frame, None, factors, scale) if width else frame
    else:
        out = before = frame
        if change is not None:
            out = add_residual(frame, change, luma=factors[0], chroma=factors[1])
    return beside(before, out, width) if width else out


def beside(original: Frame, restored: Frame, width: int) -> Frame:
    """Return a frame of twice the width: the original on the left, the restored on the right."""

    def join(a: Array, b: Array) -> Array:
        columns = a.shape[1] if a.shape[1] < original.width else width
        columns = min(columns, a.shape[1] * width // original.width or 1)
        return np.concatenate((a[:, :columns], b[:, :columns]), axis=1)

    planes = tuple(map(join, original.planes, restored.planes))
    alpha = None if original.alpha is None else join(original.alpha, original.alpha)
    return replace(original, planes=planes, alpha=alpha)


def enlarged_frame(
    frame: Frame, change: Array | None, factors: tuple[float, float], scale: int
) -> Frame:
    """Return a frame at its new size.

    Args:
        frame: As decoded.
        change: What the model adds to the bicubic picture, shape (scale * H, scale * W, 3); None
            leaves that as it is.
        factors: Strength of the change in luma and in chroma.
        scale: Enlargement.
    """
    bicubic = enlarge(to_rgb(frame), scale)
    if change is None or factors == (1.0, 1.0):
        # In one step: the bicubic picture overshoots, and would be clipped before the change.
        return from_rgb(bicubic if change is None else bicubic + change, frame)
    return add_residual(from_rgb(bicubic, frame), change, luma=factors[0], chroma=factors[1])
