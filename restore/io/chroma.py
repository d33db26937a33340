"""Chroma up- and downsampling as an exact pair: ``downsample(upsample(x)) == x``.

Upsampling is bilinear at the siting of the samples, with the edge sample repeated beyond the edge.
Downsampling is its short left inverse, not a low-pass: a residual computed at full size and brought
back to the chroma grid removes the noise that sat there in full. Where a chroma sample sits on a
pixel the inverse picks that pixel; where it sits between two pixels it is extrapolated from both
sides, which gives the taps (-1, 3, 3, -1) / 4 half way between them.

The lines of an interlaced picture belong to two fields in turn, and so do its chroma lines: each
field is a picture of its own, with its chroma a quarter of a line off.

References:
    ITU-T H.273 (2021), section 8.7 and figure 1: chroma sample locations.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from restore.io.frame import PixelFormat

FloatPlane = NDArray[np.float32]

_HORIZONTAL = {"left": 0.0, "topleft": 0.0, "bottomleft": 0.0}
_VERTICAL = {"topleft": 0.0, "top": 0.0, "bottomleft": 1.0, "bottom": 1.0}


def siting_offsets(fmt: PixelFormat, location: str) -> tuple[float, float]:
    """Return the (vertical, horizontal) place of the first chroma sample, in luma pixels.

    Chroma sample k of an axis subsampled by s sits at luma coordinate ``s * k + offset``; the
    offset is an integer (co-sited) or an integer and a half (between two pixels).
    """
    step_h, step_w = 1 << fmt.log2_chroma_h, 1 << fmt.log2_chroma_w
    return (
        _VERTICAL.get(location, 0.5) * (step_h - 1),
        _HORIZONTAL.get(location, 0.5) * (step_w - 1),
    )


def has_fields(height: int, fmt: PixelFormat) -> bool:
    """Tell whether the chroma lines of an interlaced picture can be told apart by field.

    They can where chroma has fewer lines and both fields have some.
    """
    return fmt.log2_chroma_h == 1 and height >= 3


def upsample(
    plane: FloatPlane,
    height: int,
    width: int,
    fmt: PixelFormat,
    loc: str,
    *,
    interlaced: bool = False,
) -> FloatPlane:
    """Bring a chroma plane to full size by bilinear interpolation at its siting.

    Args:
        plane: Shape (chroma height, chroma width), float32.
        height: Luma height.
        width: Luma width.
        fmt: Layout; its log2_chroma_h and log2_chroma_w are the factors.
        loc: Siting, as in `ColorSpec.chroma_location`.
        interlaced: Whether the lines belong to two fields in turn.

    Returns:
        Shape (height, width), float32.
    """
    off_h, off_w = siting_offsets(fmt, loc)
    if interlaced and has_fields(height, fmt):
        out = np.empty((height, plane.shape[1]), np.float32)
        for field in (0, 1):
            lines = len(range(field, height, 2))
            own = plane[field::2]
            if 2 * len(own) < lines:  # 2, 6, 10, ... lines: the lower field has a chroma line less
                own = np.concatenate([own, own[-1:]])
            out[field::2] = _up_rows(own, lines, 2, _field_offset(off_h, field))
        plane = out
    else:
        plane = _up_rows(plane, height, 1 << fmt.log2_chroma_h, off_h)
    return _up_columns(plane, width, 1 << fmt.log2_chroma_w, off_w)


def downsample(
    plane: FloatPlane, fmt: PixelFormat, loc: str, *, interlaced: bool = False
) -> FloatPlane:
    """Bring a full-size plane to the chroma grid; the exact left inverse of `upsample`.

    Args:
        plane: Shape (height, width), float32.
        fmt: Layout; its log2_chroma_h and log2_chroma_w are the factors.
        loc: Siting, as in `ColorSpec.chroma_location`.
        interlaced: Whether the lines belong to two fields in turn.

    Returns:
        Shape (chroma height, chroma width), float32.
    """
    off_h, off_w = siting_offsets(fmt, loc)
    if interlaced and has_fields(plane.shape[0], fmt):
        plane = _down(plane, 1 << fmt.log2_chroma_w, off_w, 1)
        out = np.empty((-(-plane.shape[0] // 2), plane.shape[1]), np.float32)
        for field in (0, 1):
            own = _down(plane[field::2], 2, _field_offset(off_h, field), 0)
            out[field::2] = own[: len(out[field::2])]
        return out
    axes = [(0, 1 << fmt.log2_chroma_h, off_h), (1, 1 << fmt.log2_chroma_w, off_w)]
    # The axis that only picks lines goes first: the filter then has less to do.
    for axis, step, offset in sorted(axes, key=lambda a: a[2] != int(a[2])):
        plane = _down(plane, step, offset, axis)
    return plane


def _field_offset(offset: float, field: int) -> float:
    """Place of a field's first chroma line, in lines of that field (H.262, figures 6-1 to 6-3)."""
    return offset if offset != 0.5 else (0.25, 0.75)[field]


def _weights(step: int, offset: float) -> list[tuple[int, float]]:
    """For each of the `step` phases: the left neighbour (relative) and the weight of the right."""
    positions = [(phase - offset) / step for phase in range(step)]
    return [(int(np.floor(p)), p - float(np.floor(p))) for p in positions]


def _up_rows(plane: FloatPlane, height: int, step: int, offset: float) -> FloatPlane:
    if step == 1:
        return plane
    rows = plane.shape[0]
    out = np.empty((rows * step, plane.shape[1]), np.float32)
    before = np.concatenate([plane[:1], plane[:-1]])
    after = np.concatenate([plane[1:], plane[-1:]])
    for phase, (left, weight) in enumerate(_weights(step, offset)):
        first, second = (before, plane) if left < 0 else (plane, after)
        if weight == 0:
            out[phase::step] = first
        else:
            out[phase::step] = cv2.addWeighted(first, 1 - weight, second, weight, 0)
    return out[:height]


def _up_columns(plane: FloatPlane, width: int, step: int, offset: float) -> FloatPlane:
    if step == 1:
        return plane
    padded = cv2.copyMakeBorder(plane, 0, 0, 1, 1, cv2.BORDER_REPLICATE)
    before, here, after = padded[:, :-2], padded[:, 1:-1], padded[:, 2:]
    phases = []
    for left, weight in _weights(step, offset):
        first, second = (before, here) if left < 0 else (here, after)
        phases.append(
            first if weight == 0 else cv2.addWeighted(first, 1 - weight, second, weight, 0)
        )
    # Interleaved channels of a (rows, columns, step) picture are the columns of the wide one.
    out = cv2.merge(phases).reshape(plane.shape[0], -1)
    return out[:, :width]


def _down(plane: FloatPlane, step: int, offset: float, axis: int) -> FloatPlane:
    """Invert bilinear upsampling along one axis."""
    if step == 1:
        return plane
    size = plane.shape[axis]
    count = -(-size // step)
    low = int(np.floor(offset))
    if offset == low:
        out = _take(plane, low, step, axis, count).copy()
    else:
        taps = [_take(plane, low + d, step, axis, count) for d in (-1, 0, 1, 2)]
        far, left, right, beyond = _taps(offset - low)
        out = cv2.addWeighted(taps[1], left, taps[2], right, 0)
        cv2.scaleAdd(taps[0], far, out, out)
        cv2.scaleAdd(taps[3], beyond, out, out)
    _extrapolate_tail(out, plane, step * (count - 1) + offset - (size - 1), axis)
    return out


def _taps(fraction: float) -> tuple[float, float, float, float]:
    """Weights of four lines around a place between the second and third of them.

    Two lines on either side are extrapolated to that place; the two results are averaged so that
    white noise in the lines grows least.
    """
    sides = [np.array([-f, 1 + f]) for f in (fraction, 1 - fraction)]
    powers = [float((side**2).sum()) for side in sides]
    left, right = (
        side * other / sum(powers) for side, other in zip(sides, powers[::-1], strict=True)
    )
    return float(left[0]), float(left[1]), float(right[1]), float(right[0])


def _take(plane: FloatPlane, start: int, step: int, axis: int, count: int) -> FloatPlane:
    """Pick `count` lines start, start + step, ...; lines outside repeat the edge line."""
    size = plane.shape[axis]
    if start < 0 or start + step * (count - 1) >= size:
        index = np.clip(np.arange(count) * step + start, 0, size - 1)
        return plane.take(index, axis=axis)
    window = slice(start, start + step * (count - 1) + 1, step)
    return plane[window] if axis == 0 else np.ascontiguousarray(plane[:, window])


def _extrapolate_tail(out: FloatPlane, plane: FloatPlane, distance: float, axis: int) -> None:
    """Set the last chroma line where it sits `distance` lines beyond the picture."""
    if distance <= 0:
        return
    last, previous = (-1, max(plane.shape[axis] - 2, 0))
    if axis == 0:
        out[-1] = plane[last] + distance * (plane[last] - plane[previous])
    else:
        out[:, -1] = plane[:, last] + distance * (plane[:, last] - plane[:, previous])
