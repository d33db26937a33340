"""Between FFmpeg's pictures and our planes: unpacked on the way in, packed again on the way out.

Every layout FFmpeg decodes to becomes a planar little-endian one without loss (packed RGB and
YUV, semi-planar, palettes, big-endian samples). Only the exotic rest (5-6-5 bit RGB, floating
point, 1 bit) goes through swscale.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from restore.io.frame import Frame, PixelFormat, Plane
from restore.io.palette import quantise

_PACKED_RGB = re.compile(r"(?P<order>[rgba0x]{3,4})(?P<bits>24|48|64)?(?P<end>le|be)?")
_SEMI = {"nv12": (1, 1, 8, 0), "nv21": (1, 1, 8, 0), "nv16": (1, 0, 8, 0), "nv24": (0, 0, 8, 0)}
_SEMI["nv42"] = (0, 0, 8, 0)
_P0 = {"0": (1, 1), "2": (1, 0), "4": (0, 0)}
_PACKED_422 = {"yuyv422": (0, 1, 3), "uyvy422": (1, 0, 2), "yvyu422": (0, 3, 1)}
_WRITTEN = ("planar", "packed", "float")


@dataclass(frozen=True)
class Layout:
    """How to take a decoded picture apart."""

    format: PixelFormat
    kind: str
    """'planar', 'packed', 'semi', 'packed422', 'palette', 'float' or 'sws' (by swscale)."""
    order: tuple[int, ...] = ()
    """packed: the component of R, G, B (, A); planar RGB: the plane of R, G, B (, A); and so on."""
    big_endian: bool = False
    shift: int = 0
    """semi: how far up in 16 bits the samples sit; float: the width in bits."""
    full_range: bool = False
    """Set by the 'yuvj' names, which say full range in the name itself."""


@lru_cache(maxsize=64)
def layout_of(name: str) -> Layout:
    """Return how pictures of FFmpeg's pixel format `name` are unpacked."""
    big = name.endswith("be")
    plain = name[:-2] + "le" if big else name
    if plain.startswith("yuvj"):
        return Layout(
            PixelFormat.from_name("yuv" + plain[4:]), "planar", (0, 1, 2), full_range=True
        )
    try:
        fmt = PixelFormat.from_name(plain)
    except ValueError:
        return _packed_layout(name, plain, big)
    if plain.startswith("ya"):
        return Layout(fmt, "packed", (0, 1), big)
    order = (2, 0, 1, 3) if fmt.family == "rgb" else (0, 1, 2, 3)
    return Layout(fmt, "planar", order, big)


def _packed_layout(name: str, plain: str, big: bool) -> Layout:
    match = _PACKED_RGB.fullmatch(name)
    if match and set("rgb") <= set(match["order"]):
        order = match["order"]
        depth = 16 if match["bits"] in ("48", "64") else 8
        alpha = "a" in order
        fmt = PixelFormat.build("rgb", depth, alpha=alpha)
        return Layout(fmt, "packed", tuple(order.index(c) for c in "rgba"[: 3 + alpha]), big)
    real = re.fullmatch(r"(gbrp|gbrap|gray)f(16|32)(?:le|be)", name)
    if real:
        fmt = PixelFormat.from_name(real[1] + "16le")
        order = (2, 0, 1, 3) if fmt.family == "rgb" else (0,)
        return Layout(fmt, "float", order, big, int(real[2]))
    if plain in _SEMI:
        log2_w, log2_h, depth, shift = _SEMI[plain]
        order = (1, 0) if plain in ("nv21", "nv42") else (0, 1)
        return Layout(PixelFormat.build("yuv", depth, log2_w, log2_h), "semi", order, big, shift)
    semi = re.fullmatch(r"p([024])(10|12|16)(?:le|be)", name)
    if semi:
        depth = int(semi[2])
        fmt = PixelFormat.build("yuv", depth, *_P0[semi[1]])
        return Layout(fmt, "semi", (0, 1), big, 16 - depth)
    if name in _PACKED_422:
        return Layout(PixelFormat.build("yuv", 8, 1, 0), "packed422", _PACKED_422[name])
    if name == "pal8":
        return Layout(PixelFormat.build("rgb", 8, alpha=True), "palette")
    return Layout(PixelFormat.from_name(_fallback(name)), "sws")


def _fallback(name: str) -> str:
    """Choose the planar layout that swscale converts an exotic one to."""
    known = av.VideoFormat(name, 16, 16)
    bits = max((c.bits for c in known.components), default=8)
    depth = next(d for d in (8, 10, 12, 14, 16) if d >= min(bits, 16))
    alpha = any(c.is_alpha for c in known.components)
    if name.startswith(("gray", "mono")):
        return PixelFormat.build("gray", depth).name
    if known.is_rgb or known.is_bayer or name.startswith(("xyz", "x2")):
        return PixelFormat.build("rgb", 16 if alpha and depth > 8 else depth, alpha=alpha).name
    log2_w, log2_h = (
        (16 // n).bit_length() - 1 for n in (known.chroma_width(16), known.chroma_height(16))
    )
    depth = 16 if depth == 14 else depth
    return PixelFormat.build("yuv", depth, log2_w, log2_h, alpha).name


def _view(picture: av.VideoFrame, index: int, channels: int, wide: bool) -> Plane:
    """Return a read-only view of one FFmpeg plane, padding cut off, bottom-up pictures turned."""
    plane = picture.planes[index]
    dtype = np.dtype("<u2" if wide else "u1")
    step = abs(plane.line_size)
    rows = np.frombuffer(plane, np.uint8).reshape(plane.height, step)
    view = rows[:, : plane.width * channels * dtype.itemsize].view(dtype)
    if plane.line_size < 0:
        view = view[::-1]
    view.flags.writeable = False
    return view.reshape(plane.height, plane.width, channels) if channels > 1 else view


def _native(plane: Plane, layout: Layout) -> Plane:
    """Swap bytes and shift samples that sit in the upper bits."""
    if layout.big_endian and plane.dtype.itemsize == 2:
        plane = plane.byteswap()
    if layout.shift:
        return np.right_shift(plane, layout.shift)
    return plane


def unpack(picture: av.VideoFrame, layout: Layout) -> tuple[tuple[Plane, ...], Plane | None]:
    """Take a decoded picture apart.

    Args:
        picture: FFmpeg's picture, of the pixel format that `layout` was made for.
        layout: From `layout_of`.

    Returns:
        The planes in our order (Y, U, V or R, G, B or Y) and the alpha plane, if any. Planar
        pictures are not copied: the arrays are read-only views that keep FFmpeg's buffer alive.
    """
    fmt = layout.format
    wide = fmt.depth > 8
    if layout.kind == "sws":
        picture = picture.reformat(format=fmt.name)
        layout = layout_of(fmt.name)
    if layout.kind == "planar":
        count = (1 if fmt.family == "gray" else 3) + fmt.alpha
        planes = [_native(_view(picture, i, 1, wide), layout) for i in layout.order[:count]]
    elif layout.kind == "packed":
        channels = len(picture.format.components)
        name = picture.format.name
        if "0" in name or "x" in name:
            channels = 4
        view = _native(_view(picture, 0, channels, wide), layout)
        planes = [np.ascontiguousarray(view[:, :, i]) for i in layout.order]
    elif layout.kind == "semi":
        chroma = _native(_view(picture, 1, 2, wide), layout)
        planes = [_native(_view(picture, 0, 1, wide), layout)]
        planes += [np.ascontiguousarray(chroma[:, :, i]) for i in layout.order]
    elif layout.kind == "float":
        count = (1 if fmt.family == "gray" else 3) + fmt.alpha
        planes = [_from_float(picture, i, layout) for i in layout.order[:count]]
    elif layout.kind == "packed422":
        planes = _unpack_422(picture, layout)
    else:
        planes = _unpack_palette(picture)
    return (tuple(planes[:-1]), planes[-1]) if fmt.alpha else (tuple(planes), None)


def _unpack_422(picture: av.VideoFrame, layout: Layout) -> list[Plane]:
    plane = picture.planes[0]
    rows = np.frombuffer(plane, np.uint8).reshape(plane.height, -1)
    pairs = -(-picture.width // 2)
    luma, blue, red = layout.order
    luma_plane = rows[:, luma : pairs * 4 : 2][:, : picture.width]
    chroma = [rows[:, i : pairs * 4 : 4] for i in (blue, red)]
    return [np.ascontiguousarray(p) for p in (luma_plane, *chroma)]


def _float_rows(picture: av.VideoFrame, index: int, layout: Layout) -> NDArray[np.floating[Any]]:
    plane = picture.planes[index]
    rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
    dtype = np.dtype(f"{'>' if layout.big_endian else '<'}f{layout.shift // 8}")
    return rows[:, : plane.width * dtype.itemsize].view(dtype)


def _from_float(picture: av.VideoFrame, index: int, layout: Layout) -> Plane:
    """Bring real numbers, nominally in [0, 1], to 16-bit integers; what lies beyond is clipped."""
    values = _float_rows(picture, index, layout).astype(np.float64)
    return np.rint(np.clip(np.nan_to_num(values), 0, 1) * 65535).astype(np.uint16)


def _unpack_palette(picture: av.VideoFrame) -> list[Plane]:
    index = _view(picture, 0, 1, False)
    palette = np.frombuffer(picture.planes[1], np.uint8).reshape(256, 4)  # B, G, R, A
    return [np.ascontiguousarray(palette[:, i])[index] for i in (2, 1, 0, 3)]


def pack(frame: Frame, name: str) -> av.VideoFrame:
    """Build FFmpeg's picture of pixel format `name` from a frame that holds the same samples.

    Raises:
        ValueError: If `name` does not have the frame's family, depth, subsampling and alpha.
    """
    layout = layout_of(name)
    if layout.kind == "palette":
        return quantise(pack(frame, "bgra"))
    if layout.format != frame.format or layout.kind not in _WRITTEN:
        raise ValueError(f"{name} does not hold the samples of {frame.format.name}")
    picture = av.VideoFrame(frame.width, frame.height, name)
    planes: list[Plane] = list(frame.planes)
    if frame.format.alpha:
        opaque = np.full((frame.height, frame.width), frame.format.maximum, frame.format.dtype)
        planes.append(frame.alpha if frame.alpha is not None else opaque)
    if layout.kind == "float":
        for plane, index in zip(planes, layout.order, strict=False):
            _float_rows(picture, index, layout)[:] = plane / 65535
    elif layout.kind == "planar":
        for plane, index in zip(planes, layout.order, strict=False):
            _store(picture, index, plane, layout.big_endian)
    else:
        channels = 4 if "0" in name else len(planes)
        ordered: list[Plane] = [planes[0]] * channels
        for plane, index in zip(planes, layout.order, strict=True):
            ordered[index] = plane
        _store(picture, 0, cv2.merge(ordered).reshape(frame.height, -1), layout.big_endian)
    return picture


def _store(picture: av.VideoFrame, index: int, plane: Plane, big_endian: bool) -> None:
    target = picture.planes[index]
    rows = np.frombuffer(target, np.uint8).reshape(target.height, abs(target.line_size))
    view = rows[:, : plane.shape[1] * plane.dtype.itemsize].view(plane.dtype)
    np.copyto(view, plane.byteswap() if big_endian and plane.dtype.itemsize == 2 else plane)


def lossless_choice(fmt: PixelFormat, names: Sequence[str]) -> str | None:
    """Return an encoder's pixel format that holds `fmt` without loss, `fmt` itself first."""
    if fmt.name in names:
        return fmt.name
    for name in names:
        layout = layout_of(name)
        if layout.format == fmt and layout.kind in _WRITTEN and not layout.full_range:
            return name
    return None


def nearest_choice(fmt: PixelFormat, names: Sequence[str]) -> str:
    """Choose the pixel format that loses least, for an encoder that lacks the exact one."""

    def loss(name: str) -> tuple[int, ...]:
        other = layout_of(name).format
        colour = fmt.family != "gray" and other.family == "gray"
        return (
            int(layout_of(name).kind not in _WRITTEN or layout_of(name).full_range),
            int(colour),
            int(fmt.alpha and not other.alpha),
            max(0, fmt.depth - other.depth),
            max(
                0, other.log2_chroma_w + other.log2_chroma_h - fmt.log2_chroma_w - fmt.log2_chroma_h
            ),
            int(fmt.family != other.family),
            other.depth - fmt.depth,
            fmt.log2_chroma_w + fmt.log2_chroma_h - other.log2_chroma_w - other.log2_chroma_h,
            int(other.alpha and not fmt.alpha),
        )

    return min(names, key=loss)
