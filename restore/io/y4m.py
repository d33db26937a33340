"""Write uncompressed YUV4MPEG2 to standard output, for other programs to read.

References:
    MJPEG tools, yuv4mpeg(5): stream and frame headers; FFmpeg's names for depths above 8 bits.
"""

import os
import sys
from contextlib import suppress
from fractions import Fraction

from restore.errors import UsageError
from restore.io.convert import convert, converted_color
from restore.io.frame import Frame, PixelFormat
from restore.io.probe import VideoInfo

_SITINGS = {"left": "mpeg2", "center": "jpeg", "topleft": "paldv"}
_ORDERS = {"progressive": "p", "tff": "t", "bff": "b"}


def nearest_layout(fmt: PixelFormat) -> PixelFormat:
    """Return the layout that y4m holds and that loses nothing but alpha."""
    if fmt.family == "gray":
        return PixelFormat.build("gray", fmt.depth)
    known = fmt.family == "yuv" and (
        fmt.subsampling in ("420", "422", "444") or (fmt.subsampling == "411" and fmt.depth == 8)
    )
    chroma = (fmt.log2_chroma_w, fmt.log2_chroma_h) if known else (0, 0)
    return PixelFormat.build("yuv", fmt.depth, *chroma)


def colour_name(fmt: PixelFormat, siting: str) -> str:
    """Return the value of the header's field C, such as 420mpeg2 or 422p10."""
    base = "mono" if fmt.family == "gray" else fmt.subsampling
    if fmt.depth == 8:
        return base + (_SITINGS.get(siting, "") if base == "420" else "")
    return f"{base}{'' if base == 'mono' else 'p'}{fmt.depth}"


class PipeWriter:
    """Write frames to standard output; the sibling of `images.ImageWriter`.

    Args:
        info: The source, for layout, rate and aspect.

    Attributes:
        notes: What y4m cannot carry.

    Raises:
        UsageError: If standard output is a terminal.
    """

    def __init__(self, info: VideoInfo) -> None:
        if sys.stdout.isatty():
            raise UsageError("standard output is a terminal; send it to a program or a file")
        self._info = info
        self._layout = nearest_layout(info.format)
        self._color = converted_color(info.color, info.format, self._layout, info.height)
        self._rate = info.average_rate or Fraction(25)
        self._first: Fraction | None = None
        self._count = 0
        self._off = Fraction(0)
        self.notes: list[str] = []
        if info.format.alpha:
            self.notes.append("y4m has no transparency: it is lost")
        self._pipe = os.fdopen(os.dup(1), "wb")

    def write(self, frame: Frame) -> None:
        """Write one frame.

        Raises:
            OSError: If nobody reads any more.
        """
        if self._count == 0:
            self._pipe.write(self._header(frame).encode())
        time = frame.time or Fraction(0)
        self._first = time if self._first is None else self._first
        self._off = max(self._off, abs(time - self._first - self._count / self._rate))
        self._count += 1
        self._pipe.write(b"FRAME\n")
        for plane in convert(frame, self._layout, self._color).planes:
            self._pipe.write(plane.astype(f"<u{plane.dtype.itemsize}").tobytes())

    def close(self) -> None:
        """Hand over what is left."""
        self._pipe.close()
        if self._off > 1 / self._rate:
            self.notes.append(
                f"y4m has no timestamps: frames follow at {self._rate} per second,"
                f" up to {float(self._off):.3g} s from their own times"
            )

    def discard(self) -> None:
        """Write no more; what was written cannot be taken back."""
        with suppress(OSError):
            self._pipe.close()

    def _header(self, frame: Frame) -> str:
        aspect = self._info.sample_aspect_ratio or Fraction(0)
        shape = f"{aspect.numerator}:{aspect.denominator if aspect else 0}"
        fields = [
            "YUV4MPEG2",
            f"W{frame.width}",
            f"H{frame.height}",
            f"F{self._rate.numerator}:{self._rate.denominator}",
            f"I{_ORDERS[self._info.field_order]}",
            f"A{shape}",
            f"C{colour_name(self._layout, self._color.chroma_location)}",
        ]
        if self._color.tags.range or self._color.full_range:
            fields.append(f"XCOLORRANGE={'FULL' if self._color.full_range else 'LIMITED'}")
        return " ".join(fields) + "\n"
