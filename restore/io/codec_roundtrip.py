"""Send frames through a real encoder and decoder in memory, to train on what codecs really do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

import av
import numpy as np
import numpy.typing as npt

from restore.io.color import from_rgb, to_rgb
from restore.io.formats import layout_of, pack, unpack
from restore.io.frame import ColorSpec, Frame

ByteArray = npt.NDArray[np.uint8]

DECODERS = {"libx264": "h264", "libx265": "hevc"}
"""Encoder name -> name of the decoder of the same standard."""

_RATE = 25
_COLOR = ColorSpec("bt601", full_range=False)
# x265 writes outside its buffers when a side is shorter than its coding block (seen with 4.1).
_SMALLEST = {"libx264": 16, "libx265": 64}


@dataclass(frozen=True)
class RoundTrip:
    """Hold what came back from the decoder."""

    frames: ByteArray
    """(N, H, W, 3) RGB, the size and number that went in."""
    bits: int
    """Size of all packets."""

    @property
    def bits_per_pixel(self) -> float:
        """Bits per pixel and frame."""
        return self.bits / float(np.prod(self.frames.shape[:3]))


def encode_decode(
    frames: ByteArray,
    codec: str = "libx264",
    *,
    crf: float | None = None,
    bitrate: int | None = None,
    preset: str = "veryfast",
    pix_fmt: str = "yuv420p",
) -> RoundTrip:
    """Encode frames and decode them again, on one thread, without a container.

    Args:
        frames: (N, H, W, 3) uint8 RGB, 25 frames a second; odd sizes are padded and cut again.
        codec: One of ``DECODERS``.
        crf: Constant quality, 0 best, 51 worst. Give this or ``bitrate``.
        bitrate: Average bits per second.
        preset: The encoder's speed preset.
        pix_fmt: Pixel format of the stream, such as yuv420p.

    Returns:
        The decoded frames and the number of bits they took. BT.601, limited range, both ways.

    Raises:
        ValueError: If the array, the codec or the pair of rate options cannot be used.
    """
    if frames.ndim != 4 or frames.shape[3] != 3 or frames.dtype != np.uint8 or not len(frames):
        raise ValueError(f"frames must be (N, H, W, 3) uint8, not {frames.shape} {frames.dtype}")
    if codec not in DECODERS:
        raise ValueError(f"codec must be one of {', '.join(DECODERS)}, not {codec}")
    if (crf is None) == (bitrate is None):
        raise ValueError("give either crf or bitrate")
    height, width = frames.shape[1:3]
    padded = _pad_even(frames, _SMALLEST[codec])
    encoder = _encoder(codec, padded.shape[2], padded.shape[1], pix_fmt)
    encoder.options = _options(codec, crf, preset)
    if bitrate is not None:
        encoder.bit_rate = int(bitrate)
    layout = layout_of(pix_fmt)
    template = Frame((padded[0, ..., 0],), layout.format, _COLOR, encoder.time_base)
    packets = []
    for number, image in enumerate(padded):
        frame = pack(from_rgb(image.astype(np.float32) / 255, template), pix_fmt)
        frame.pts, frame.time_base = number, encoder.time_base
        packets += [bytes(packet) for packet in encoder.encode(frame)]
    packets += [bytes(packet) for packet in encoder.encode(None)]
    decoded = _decode(codec, packets, encoder.extradata)
    if len(decoded) != len(frames):
        raise RuntimeError(f"{codec} returned {len(decoded)} of {len(frames)} frames")
    images = [to_rgb(replace(template, planes=unpack(f, layout)[0])) for f in decoded]
    out = np.rint(np.clip(np.stack(images)[:, :height, :width], 0, 1) * 255).astype(np.uint8)
    return RoundTrip(np.ascontiguousarray(out), 8 * sum(map(len, packets)))


def _pad_even(frames: ByteArray, smallest: int) -> ByteArray:
    height, width = frames.shape[1:3]
    down = max(smallest, height + height % 2) - height
    right = max(smallest, width + width % 2) - width
    if not (down or right):
        return np.ascontiguousarray(frames)
    return np.pad(frames, ((0, 0), (0, down), (0, right), (0, 0)), mode="edge")


def _encoder(codec: str, width: int, height: int, pix_fmt: str) -> av.VideoCodecContext:
    encoder = cast(av.VideoCodecContext, av.CodecContext.create(codec, "w"))
    encoder.width, encoder.height, encoder.pix_fmt = width, height, pix_fmt
    encoder.time_base, encoder.framerate = Fraction(1, _RATE), Fraction(_RATE)
    encoder.thread_count = 1
    return encoder


def _options(codec: str, crf: float | None, preset: str) -> dict[str, str]:
    options = {"preset": preset}
    if crf is not None:
        options["crf"] = f"{crf:.2f}"
    if codec == "libx265":
        options["x265-params"] = "log-level=none:pools=none:frame-threads=1"
    else:
        # x264's AVX-512 code now and then encodes the same small clip in two ways.
        options["x264-params"] = "cpu-independent=1"
    return options


def _decode(codec: str, packets: list[bytes], extradata: bytes | None) -> list[av.VideoFrame]:
    decoder = cast(av.VideoCodecContext, av.CodecContext.create(DECODERS[codec], "r"))
    decoder.thread_count = 1
    if extradata:
        decoder.extradata = extradata
    frames = []
    for data in packets:
        frames += decoder.decode(av.Packet(data))
    return frames + decoder.decode(None)
