"""Compression of a training clip by a real encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np

from restore.data.noise import FloatArray
from restore.io.codec_roundtrip import encode_decode

_RATE = 25


@dataclass(frozen=True)
class Compress:
    """Encode and decode a clip in memory.

    The block grid of a file that was cropped or scaled lies anywhere, so the patch is padded at
    the top left by ``offset`` before encoding. The first frame of a clip is an I frame; with
    ``reverse`` the last one is.
    """

    name: ClassVar[str] = "compress"
    codec: str = "libx264"
    crf: float = 0.0
    """Constant quality; not used when ``bits_per_pixel`` is above zero."""
    bits_per_pixel: float = 0.0
    """Rate asked for. Encoders fall short of it on clips of a few frames (about two thirds)."""
    preset: str = "veryfast"
    offset: tuple[int, int] = (0, 0)
    """Rows and columns of padding."""
    reverse: bool = False

    def __call__(self, clip: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the decoded clip: 8-bit values in [0, 1]."""
        down, right = self.offset
        frames = np.clip(np.rint(clip * np.float32(255)), 0, 255).astype(np.uint8)
        if down or right:
            border = cv2.BORDER_REFLECT_101
            frames = np.stack([cv2.copyMakeBorder(f, down, 0, right, 0, border) for f in frames])
        if self.reverse:
            frames = frames[::-1]
        rate = self.bits_per_pixel * frames.shape[1] * frames.shape[2] * _RATE
        trip = encode_decode(
            frames,
            self.codec,
            crf=None if rate else self.crf,
            bitrate=int(rate) if rate else None,
            preset=self.preset,
        )
        decoded = trip.frames[::-1] if self.reverse else trip.frames
        return decoded[:, down:, right:].astype(np.float32) * np.float32(1 / 255)
