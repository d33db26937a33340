"""Bring a frame to another layout where the encoder lacks its own."""

from dataclasses import replace

import numpy as np

from restore.io.color import from_rgb, resolve_color, to_rgb
from restore.io.frame import ColorSpec, Frame, PixelFormat, Plane

_MATRIX_TAG = {"bt601": 6, "bt709": 1}


def converted_color(
    color: ColorSpec, source: PixelFormat, fmt: PixelFormat, height: int, encoder: str = ""
) -> ColorSpec:
    """Return the colour of `fmt` planes made from `source` planes.

    RGB becomes limited-range YUV; JPEG is always full-range BT.601 (ITU-T T.871, section 7).
    """
    tags = color.tags
    if encoder == "mjpeg" and fmt.family != "gray":
        same = color.matrix == "bt601" and color.full_range
        return color if same else resolve_color(replace(tags, matrix=5, range=2), fmt, height)
    if source.family == fmt.family or (source.family == "gray" and fmt.family == "yuv"):
        return color
    if fmt.family == "rgb":
        return resolve_color(replace(tags, matrix=0, range=2), fmt, height)
    matrix = _MATRIX_TAG["bt709" if height >= 720 else "bt601"]
    return resolve_color(replace(tags, matrix=matrix, range=1), fmt, height)


def said_aloud(color: ColorSpec, fmt: PixelFormat, height: int, new_height: int) -> ColorSpec:
    """Return the colour with its matrix tagged where players would guess another one.

    They guess by the number of lines: a picture without a tag, enlarged beyond 720 lines, would be
    shown in wrong colours.
    """
    grows = height < 720 <= new_height
    open_question = fmt.family == "yuv" and color.tags.matrix == 2
    if not grows or not open_question or color.matrix not in _MATRIX_TAG:
        return color
    return replace(color, tags=replace(color.tags, matrix=_MATRIX_TAG[color.matrix]))


def convert(frame: Frame, fmt: PixelFormat, color: ColorSpec) -> Frame:
    """Return the picture in another layout, through unclipped float RGB.

    Args:
        frame: The picture.
        fmt: The layout wanted; alpha is scaled to its depth, or made opaque, or left out.
        color: The colour wanted, from `converted_color`.
    """
    same = (color.matrix, color.full_range) == (frame.color.matrix, frame.color.full_range)
    if frame.format == fmt and same:
        return frame
    template = replace(frame, format=fmt, color=color, alpha=None)
    if same and _only_deeper(frame, fmt):
        planes = tuple(_deepen(p, frame.format, fmt, color.full_range) for p in frame.planes)
        result = replace(template, planes=planes)
    else:
        result = from_rgb(to_rgb(frame), template)
    if not fmt.alpha:
        return result
    if frame.alpha is None:
        alpha = np.full((frame.height, frame.width), fmt.maximum, fmt.dtype)
    elif fmt.depth >= frame.format.depth:
        alpha = _deepen(frame.alpha, frame.format, fmt, full=True)
    else:
        scaled = np.rint(frame.alpha * (fmt.maximum / frame.format.maximum))
        alpha = scaled.astype(fmt.dtype)
    return replace(result, alpha=alpha)


def _only_deeper(frame: Frame, fmt: PixelFormat) -> bool:
    """Tell whether `fmt` differs in depth alone, upwards, and integers can express that exactly."""
    own = frame.format
    same = (own.family, own.subsampling) == (fmt.family, fmt.subsampling)
    return same and fmt.depth >= own.depth and not (frame.color.full_range and own.family == "yuv")


def _deepen(plane: Plane, own: PixelFormat, fmt: PixelFormat, full: bool) -> Plane:
    """Bring samples to a greater depth; a shift to the right gives the old ones back.

    Limited range grows by powers of two (H.273, equations 23 and 24); in full range the largest
    value has to stay the largest, so the upper bits are repeated below.
    """
    shift = fmt.depth - own.depth
    wide = plane.astype(np.uint32) << shift
    if full:
        wide |= plane.astype(np.uint32) >> (own.depth - shift)
    return wide.astype(fmt.dtype)
