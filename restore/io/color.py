"""Planes to RGB and back with explicit matrix and range; a residual added to the planes themselves.

All conversions are written out here: matrix and range are always known, 10-bit samples never
pass through 8-bit RGB, and HDR transfer functions (PQ, HLG) are left alone: the arithmetic is
done on the non-linear values, as it is for SDR.

References:
    ITU-R BT.601-7, section 2.5; BT.709-6, items 3.2 to 3.4; BT.2020-2, table 4 (matrices).
    ITU-T H.273 (2021), section 8.3: code points and equations 23 to 28 (ranges).
"""

from dataclasses import replace
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from restore.errors import UsageError
from restore.io.chroma import downsample, upsample
from restore.io.frame import ColorSpec, ColorTags, Frame, PixelFormat, Plane

RGBImage = NDArray[np.float32]

MATRICES: dict[str, tuple[float, float]] = {
    "bt601": (0.299, 0.114),
    "bt709": (0.2126, 0.0722),
    "bt2020": (0.2627, 0.0593),
    "smpte240m": (0.212, 0.087),
    "fcc": (0.30, 0.11),
}
"""Weights (K_R, K_B) of red and blue in luma."""

_YCGCO = np.array([[0.25, 0.5, 0.25], [-0.25, 0.5, -0.25], [0.5, 0.0, -0.5]])
_MATRIX_CODES = {1: "bt709", 4: "fcc", 5: "bt601", 6: "bt601", 7: "smpte240m", 8: "ycgco"}
_MATRIX_CODES |= {0: "rgb", 9: "bt2020", 10: "bt2020"}
_PRIMARIES = {1: "bt709", 4: "bt470m", 5: "bt470bg", 6: "smpte170m", 7: "smpte240m", 8: "film"}
_PRIMARIES |= {9: "bt2020", 10: "smpte428", 11: "smpte431", 12: "smpte432", 22: "ebu3213"}
_TRANSFER = {1: "bt709", 4: "gamma22", 5: "gamma28", 6: "smpte170m", 7: "smpte240m", 8: "linear"}
_TRANSFER |= {13: "srgb", 14: "bt2020-10", 15: "bt2020-12", 16: "pq", 17: "smpte428", 18: "hlg"}
_LOCATIONS = ("", "left", "center", "topleft", "top", "bottomleft", "bottom")


def resolve_color(
    tags: ColorTags, fmt: PixelFormat, height: int, input_matrix: str | None = None
) -> ColorSpec:
    """Decide what the tags leave open.

    An unspecified matrix is BT.709 from 720 lines up, else BT.601; an unspecified range is limited
    for YUV and full for RGB and gray; an unspecified siting is left.

    Args:
        tags: What the file says.
        fmt: Layout of the planes.
        height: Picture height in lines.
        input_matrix: A key of `MATRICES` or 'ycgco'; overrides the tag of a YUV file.

    Raises:
        UsageError: If `input_matrix` is unknown.
    """
    if input_matrix is not None and input_matrix not in (*MATRICES, "ycgco"):
        known = ", ".join((*MATRICES, "ycgco"))
        raise UsageError(f"unknown input matrix {input_matrix!r}; use one of {known}")
    if fmt.family == "rgb":
        matrix = "rgb"
    else:
        guess = "bt709" if height >= 720 else "bt601"
        matrix = input_matrix or _MATRIX_CODES.get(tags.matrix, guess)
    if matrix == "rgb" and fmt.family == "gray":
        matrix = "bt709"
    full = tags.range == 2 or (tags.range == 0 and fmt.family != "yuv")
    return ColorSpec(
        matrix=matrix,
        full_range=full,
        primaries=_PRIMARIES.get(tags.primaries, "unspecified"),
        transfer=_TRANSFER.get(tags.transfer, "unspecified"),
        chroma_location=_LOCATIONS[tags.chroma_location if tags.chroma_location < 7 else 0]
        or "left",
        tags=tags,
    )


@lru_cache(maxsize=32)
def ycc_matrix(name: str) -> NDArray[np.float64]:
    """Return the (3, 3) matrix from R'G'B' in [0, 1] to Y' in [0, 1], Cb, Cr in [-0.5, 0.5]."""
    if name == "ycgco":
        return _YCGCO
    if name == "rgb":  # identity: planes are G, B, R (H.273 equations 41 to 43)
        return np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    kr, kb = MATRICES[name]
    luma = np.array([kr, 1 - kr - kb, kb])
    blue = (np.array([0.0, 0.0, 1.0]) - luma) / (2 * (1 - kb))
    red = (np.array([1.0, 0.0, 0.0]) - luma) / (2 * (1 - kr))
    return np.stack([luma, blue, red])


def _levels(fmt: PixelFormat, color: ColorSpec) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the (3,) scale and offset in code values: code = value * scale + offset."""
    one = float(1 << (fmt.depth - 8))
    luma, black = (float(fmt.maximum), 0.0) if color.full_range else (219 * one, 16 * one)
    if fmt.family != "yuv" or color.matrix == "rgb":
        return np.full(3, luma), np.full(3, black)
    chroma = float(fmt.maximum) if color.full_range else 224 * one
    return np.array([luma, chroma, chroma]), np.array([black, 128 * one, 128 * one])


def to_rgb(frame: Frame) -> RGBImage:
    """Convert the planes to RGB.

    Args:
        frame: Any family, depth and subsampling; gray gives three equal channels.

    Returns:
        Shape (height, width, 3), float32 R'G'B', nominally in [0, 1] and not clipped (values beyond
        nominal black and white of limited-range video survive).
    """
    fmt = frame.format
    scale, offset = _levels(fmt, frame.color)
    planes = [plane.astype(np.float32) for plane in frame.planes]
    if fmt.family == "gray":
        gray = (planes[0] - np.float32(offset[0])) * np.float32(1 / scale[0])
        return cv2.merge([gray, gray, gray])
    if fmt.family == "yuv":
        location = frame.color.chroma_location
        for i in (1, 2):
            planes[i] = upsample(
                planes[i], frame.height, frame.width, fmt, location, interlaced=frame.interlaced
            )
        inverse = np.linalg.inv(ycc_matrix(frame.color.matrix)) / scale
    else:
        inverse = np.diag(1 / scale)
    matrix = np.column_stack([inverse, -inverse @ offset])
    return cv2.transform(cv2.merge(planes), matrix)


def add_residual(
    frame: Frame, residual: RGBImage, *, luma: float = 1.0, chroma: float = 1.0
) -> Frame:
    """Add an RGB residual to the frame's own planes, at their own depth.

    Args:
        frame: The original picture.
        residual: Shape (height, width, 3), float32, in units of R'G'B' [0, 1].
        luma: Factor on the luma part of the residual.
        chroma: Factor on the colour part.

    Returns:
        A frame of the same layout, rounded and clipped to [0, 2^depth - 1]. A residual of zero
        gives the same planes bit for bit. Alpha, time and colour are those of `frame`.

    Raises:
        ValueError: If the residual does not have the frame's size.
    """
    if residual.shape != (frame.height, frame.width, 3):
        expected = (frame.height, frame.width, 3)
        raise ValueError(f"residual has shape {residual.shape}, the frame needs {expected}")
    if luma == 0 and chroma == 0:
        return frame
    fmt = frame.format
    scale, _ = _levels(fmt, frame.color)
    if fmt.family == "rgb":
        to_ycc = ycc_matrix("bt709")
        matrix = np.linalg.inv(to_ycc) @ np.diag([luma, chroma, chroma]) @ to_ycc
        # For equal factors the product above is the identity up to rounding: say so exactly.
        matrix = np.eye(3) * luma if luma == chroma else matrix
    else:
        matrix = np.diag([luma, chroma, chroma]) @ ycc_matrix(frame.color.matrix)
    matrix = (np.diag(scale) @ matrix)[: len(frame.planes)]
    changes = cv2.split(cv2.transform(np.ascontiguousarray(residual), matrix))
    planes = list(frame.planes)
    for i, change in enumerate(changes):
        if i > 0 and fmt.family == "yuv":
            location = frame.color.chroma_location
            change = downsample(change, fmt, location, interlaced=frame.interlaced)
        planes[i] = _add(planes[i], change, fmt)
    return replace(frame, planes=tuple(planes))


def from_rgb(rgb: RGBImage, template: Frame) -> Frame:
    """Convert an RGB picture to the layout and colour of `template`; the size may differ from it.

    Args:
        rgb: Shape (height, width, 3), float32 R'G'B', nominally in [0, 1].
        template: Gives layout, colour, time and alpha (resized bilinearly where the size differs).

    Returns:
        A frame of the size of `rgb`.
    """
    fmt, color = template.format, template.color
    height, width = rgb.shape[:2]
    fields = template.interlaced and (height, width) == (template.height, template.width)
    scale, offset = _levels(fmt, color)
    to_ycc = np.eye(3) if fmt.family == "rgb" else ycc_matrix(color.matrix)
    count = 1 if fmt.family == "gray" else 3
    matrix = np.column_stack([np.diag(scale) @ to_ycc, offset])[:count]
    values = cv2.split(cv2.transform(np.ascontiguousarray(rgb), matrix))
    planes = []
    for i, value in enumerate(values):
        if i > 0 and fmt.family == "yuv":
            value = downsample(value, fmt, color.chroma_location, interlaced=fields)
        planes.append(_add(np.zeros(value.shape, fmt.dtype), value, fmt))
    alpha = template.alpha
    if alpha is not None and alpha.shape != (height, width):
        alpha = cv2.resize(alpha, (width, height), interpolation=cv2.INTER_LINEAR)
    return replace(template, planes=tuple(planes), alpha=alpha)


def _add(plane: Plane, change: NDArray[np.float32], fmt: PixelFormat) -> Plane:
    """Add in float, round to nearest, clip to the depth."""
    depth = cv2.CV_8U if fmt.dtype is np.uint8 else cv2.CV_16U
    out: Plane = cv2.add(plane, change, dtype=depth)
    return np.minimum(out, fmt.dtype(fmt.maximum)) if fmt.depth not in (8, 16) else out
