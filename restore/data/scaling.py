"""How much to reduce a clip before it counts as clean."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from restore.data.cache import ByteArray

_LINES = 540
_LARGE = 720
_SMALLEST = 160
_GOOD_JPEG = 95
_STANDARD_MEAN = 57.625
"""Mean of the luma quantisation table in ITU-T T.81, table K.1."""


def automatic_scale(size: tuple[int, int], *, quality: int) -> float:
    """Choose the factor that makes lossy frames usable as ground truth.

    Frames of video codecs and of JPEG below quality 95 (as a rule they came out of a video codec)
    are halved at least; everything above 720 lines comes down to 540 lines at most. The shorter
    side is kept at 160 pixels or more.

    Args:
        size: (H, W) as stored; "lines" means the shorter side, so that portrait video counts alike.
        quality: 0 for a video codec, else JPEG quality (100 for lossless pictures).

    Returns:
        Factor in (0, 1].
    """
    lines = min(size)
    factor = 1.0
    if quality < _GOOD_JPEG:
        factor = 0.5
    if lines > _LARGE:
        factor = min(factor, _LINES / lines)
    return min(1.0, max(factor, _SMALLEST / lines))


def reduce(image: ByteArray, factor: float) -> ByteArray:
    """Scale an image down by area averaging; a factor of 1 returns it as it is."""
    if factor == 1:
        return image
    size = (max(1, round(image.shape[1] * factor)), max(1, round(image.shape[0] * factor)))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def jpeg_quality(file: Path) -> int:
    """Estimate a JPEG's quality (1 to 100) from its luma table; 100 for any other file.

    References:
        ITU-T T.81, section B.2.4.1; the scaling of the Independent JPEG Group.
    """
    data = file.read_bytes()[:65536]
    if data[:2] != b"\xff\xd8":
        return 100
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != 0xDA:
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at + 1] == 0xDB:
            wide = data[at + 4] >> 4
            kind = ">u2" if wide else "u1"
            table = np.frombuffer(data, kind, 64, at + 5)
            percent = 100 * float(table.mean()) / _STANDARD_MEAN
            quality = (200 - percent) / 2 if percent <= 100 else 5000 / percent
            return int(np.clip(round(quality), 1, 100))
        at += 2 + length
    return 100
