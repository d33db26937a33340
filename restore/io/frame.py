"""What one decoded picture is: planes of integers, their layout, their colour, their time."""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.unsignedinteger[Any]]
"""uint8 or uint16."""

_SUBSAMPLING = {
    "420": (1, 1),
    "422": (1, 0),
    "444": (0, 0),
    "440": (0, 1),
    "411": (2, 0),
    "410": (2, 2),
}
_NAME = re.compile(
    r"(?:yuv(?P<yuv>a?)(?P<sub>420|422|444|440|411|410)p|(?P<gbr>gbra?)p|(?P<gray>gray|ya))"
    r"(?P<depth>8|9|10|12|14|16)?(?:le)?"
)


@dataclass(frozen=True)
class PixelFormat:
    """The layout of a picture: which planes, how deep, how much the chroma is subsampled."""

    name: str
    """FFmpeg's name; always planar and little-endian (the reader unpacks the others)."""
    family: str
    """'yuv', 'rgb' or 'gray'."""
    depth: int
    """Bits per sample, 8 to 16."""
    log2_chroma_w: int = 0
    log2_chroma_h: int = 0
    alpha: bool = False

    @classmethod
    def from_name(cls, name: str) -> "PixelFormat":
        """Parse the name of a planar little-endian layout.

        Raises:
            ValueError: If the name is not one of a planar YUV, RGB or gray layout.
        """
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(f"{name!r} is not a planar integer layout")
        depth = int(match["depth"] or 8)
        if match["sub"]:
            log2_w, log2_h = _SUBSAMPLING[match["sub"]]
            return cls(name, "yuv", depth, log2_w, log2_h, match["yuv"] == "a")
        if match["gbr"]:
            return cls(name, "rgb", depth, alpha=match["gbr"] == "gbra")
        return cls(name, "gray", depth, alpha=match["gray"] == "ya")

    @classmethod
    def build(
        cls, family: str, depth: int, log2_w: int = 0, log2_h: int = 0, alpha: bool = False
    ) -> "PixelFormat":
        """Compose the layout of a family, depth, subsampling and alpha."""
        suffix = "" if depth == 8 else f"{depth}le"
        if family == "yuv":
            sub = next(k for k, v in _SUBSAMPLING.items() if v == (log2_w, log2_h))
            name = f"yuv{'a' if alpha else ''}{sub}p{suffix}"
        elif family == "rgb":
            name = f"gbr{'a' if alpha else ''}p{suffix}"
        else:
            name = f"ya{depth}{'' if depth == 8 else 'le'}" if alpha else f"gray{suffix}"
        return cls(name, family, depth, log2_w, log2_h, alpha)

    @property
    def subsampling(self) -> str:
        """The usual three digits, such as '420'; '444' for RGB and gray."""
        pair = (self.log2_chroma_w, self.log2_chroma_h)
        return next(k for k, v in _SUBSAMPLING.items() if v == pair)

    @property
    def maximum(self) -> int:
        """The largest sample value, 2^depth - 1."""
        return (1 << self.depth) - 1

    @property
    def dtype(self) -> type[np.uint8] | type[np.uint16]:
        """Sample type of the planes: uint8 for 8 bits, uint16 above."""
        return np.uint8 if self.depth == 8 else np.uint16

    def chroma_size(self, height: int, width: int) -> tuple[int, int]:
        """Return the (height, width) of the chroma planes, rounded up as FFmpeg does."""
        return -(-height >> self.log2_chroma_h), -(-width >> self.log2_chroma_w)


@dataclass(frozen=True)
class ColorTags:
    """The numbers the file itself carries (ITU-T H.273 code points); 2 means unspecified."""

    matrix: int = 2
    range: int = 0
    """0 unspecified, 1 limited, 2 full."""
    primaries: int = 2
    transfer: int = 2
    chroma_location: int = 0
    """0 unspecified, 1 left, 2 center, 3 topleft, 4 top, 5 bottomleft, 6 bottom."""


@dataclass(frozen=True)
class ColorSpec:
    """How the samples are to be read as colours, with every open question decided."""

    matrix: str
    """'bt601', 'bt709', 'bt2020', 'smpte240m', 'fcc', 'ycgco', or 'rgb' for RGB planes."""
    full_range: bool
    primaries: str = "unspecified"
    transfer: str = "unspecified"
    chroma_location: str = "left"
    """'left', 'center', 'topleft', 'top', 'bottomleft' or 'bottom'."""
    tags: ColorTags = field(default_factory=ColorTags)
    """What the file said; the output is tagged with this, so unspecified stays unspecified."""


@dataclass(frozen=True)
class Frame:
    """One picture with its place in time. Planes may be read-only views of the decoder's memory."""

    planes: tuple[Plane, ...]
    """Y, U, V or R, G, B or Y; each (h, w), uint8 at 8 bits and uint16 above, native integers."""
    format: PixelFormat
    color: ColorSpec
    time_base: Fraction
    pts: int | None = None
    duration: int | None = None
    alpha: Plane | None = None
    """(height, width) at the depth of the planes; never processed."""
    interlaced: bool = False

    @property
    def height(self) -> int:
        """Picture height in lines."""
        return int(self.planes[0].shape[0])

    @property
    def width(self) -> int:
        """Picture width in pixels."""
        return int(self.planes[0].shape[1])

    @property
    def time(self) -> Fraction | None:
        """Presentation time in seconds, exact."""
        return None if self.pts is None else self.pts * self.time_base
