"""Say in a finished Matroska file how wide its pixels are, which FFmpeg's muxer is not told.

The muxer writes the size of the picture and leaves the shape of the pixels open. The track's entry
in the header is rewritten in place: the room for the display size is taken from what the muxer
leaves empty in the same entry, so that nothing else in the file moves.

References:
    RFC 8794 (EBML), sections 4, 5 and 11.3: sizes, IDs, CRC-32 and Void.
    RFC 9559 (Matroska), section 5.1.4: the elements of a track.
"""

import zlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

_SEGMENT, _TRACKS, _ENTRY, _VIDEO = 0x18538067, 0x1654AE6B, 0xAE, 0xE0
_TYPE, _VOID, _CHECKSUM = 0x83, 0xEC, 0xBF
_WIDTH, _HEIGHT, _UNIT = 0x54B0, 0x54BA, 0x54B2
_IS_VIDEO = b"\x01"
_RATIO = 3
"""Value of the display unit: width and height are a ratio, no numbers of pixels."""
_HEADER = 1 << 20
"""Bytes at the beginning of a file within which the tracks are looked for."""

Element = tuple[int, bytes]
"""ID and content."""


def set_pixel_aspect(
    path: Path, ordinal: int, aspect: Fraction, size: tuple[int, int], *, ratios: bool = True
) -> bool:
    """Write the display size of one video track into a file.

    Args:
        path: A complete Matroska or WebM file.
        ordinal: Which of its video tracks, counted from 0.
        aspect: Width of a pixel divided by its height.
        size: Width and height of the coded picture.
        ratios: Whether a display size may be a mere ratio; WebM knows numbers of pixels only.

    Returns:
        Whether it could be done; if not, the file is as it was.
    """
    with path.open("r+b") as file:
        head = file.read(_HEADER)
        try:
            start, end = _tracks(head)
            tracks = _with_display(head[start:end], ordinal, _display(aspect, size, ratios))
        except LookupError:
            return False
        file.seek(start)
        file.write(tracks)
    return True


def _display(aspect: Fraction, size: tuple[int, int], ratios: bool) -> list[Element]:
    """Return the display size: pixels where they come out whole, else the ratio of the sides.

    Numbers of pixels are the default, and so is the picture's own height.
    """
    width = aspect * size[0]
    if width.denominator == 1 or not ratios:
        return [(_WIDTH, _number(round(width)))]
    shape = width / size[1]
    sides = [(_WIDTH, _number(shape.numerator)), (_HEIGHT, _number(shape.denominator))]
    return [*sides, (_UNIT, _number(_RATIO))]


def _tracks(head: bytes) -> tuple[int, int]:
    """Return where the content of the element Tracks begins and ends.

    Raises:
        LookupError: If it is not there in full.
    """
    for name, _, start, _ in _elements(head, 0):
        if name == _SEGMENT:
            for inner, _, begin, end in _elements(head, start):
                if inner == _TRACKS and end <= len(head):
                    return begin, end
    raise LookupError("no tracks")


def _with_display(tracks: bytes, ordinal: int, display: list[Element]) -> bytes:
    """Return the content of Tracks, as long as before, with a display size in one entry.

    Raises:
        LookupError: If there is no such track, or no room in it.
    """
    found = [
        (start, begin, end)
        for name, start, begin, end in _elements(tracks, 0)
        if name == _ENTRY and (_TYPE, _IS_VIDEO) in _children(tracks[begin:end])
    ]
    start, begin, end = found[ordinal]
    entry = _entry(_children(tracks[begin:end]), display, end - start)
    tracks = tracks[:start] + entry + tracks[end:]
    if tracks[0] == _CHECKSUM:  # of all that follows it
        _, _, checked, after = next(_elements(tracks, 0))
        summed = zlib.crc32(tracks[after:]).to_bytes(4, "little")
        tracks = tracks[:checked] + summed + tracks[after:]
    return tracks


def _entry(children: list[Element], display: list[Element], room: int) -> bytes:
    """Return a track's entry that fills the room, its display size replaced.

    Raises:
        LookupError: If it does not fit.
    """
    content = b""
    for name, inner in children:
        if name == _VIDEO:
            kept = [e for e in _children(inner) if e[0] not in (_WIDTH, _HEIGHT, _UNIT, _VOID)]
            inner = b"".join(_written(*element) for element in [*kept, *display])
        content += b"" if name == _VOID else _written(name, inner)
    # What is left over becomes an empty element; two bytes are the smallest one.
    for width in range(1, 9):
        spare = room - 1 - width - len(content)
        if (spare == 0 or 2 <= spare < 0x80) and len(content) + spare < (1 << 7 * width) - 1:
            filling = _written(_VOID, bytes(spare - 2)) if spare else b""
            return _written(_ENTRY, content + filling, width)
    raise LookupError("no room in the track's entry")


def _children(content: bytes) -> list[Element]:
    return [(name, content[begin:end]) for name, _, begin, end in _elements(content, 0)]


def _elements(data: bytes, position: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (ID, start, start of the content, end) of the elements from a position on.

    The last one may end beyond the data.
    """
    while position < len(data):
        start = position
        name, position = _variable(data, position, marker=True)
        size, position = _variable(data, position, marker=False)
        yield name, start, position, position + size
        position += size


def _variable(data: bytes, position: int, *, marker: bool) -> tuple[int, int]:
    """Read an integer whose leading zeros say its length; return it and where it ends."""
    length = 9 - data[position].bit_length()
    value = int.from_bytes(data[position : position + length], "big")
    return value if marker else value & ((1 << 7 * length) - 1), position + length


def _written(name: int, content: bytes, width: int = 0) -> bytes:
    """Return an element; its size takes `width` bytes, or as few as can be."""
    size = len(content)
    width = width or next(w for w in range(1, 9) if size < (1 << 7 * w) - 1)
    return _number(name) + (size | 1 << 7 * width).to_bytes(width, "big") + content


def _number(value: int) -> bytes:
    return value.to_bytes(max(1, -(-value.bit_length() // 8)), "big")
