"""Segments: coded video in files of their own, each decodable by itself, joined without loss.

A segment's file holds the packets as the encoder gave them, with their exact times, whatever the
codec and the time base: a line of JSON, then record after record.
"""

import hashlib
import json
import struct
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

import av
from av.error import FFmpegError
from av.packet import PacketSideData

from restore.errors import OutputError
from restore.io.encode import Coding, PictureEncoder
from restore.io.frame import Frame
from restore.io.output import OutputFile

_RECORD = struct.Struct("<qqqBII")
"""pts, dts, duration, whether it is a key frame, bytes of alpha, bytes of data."""
_ALPHA, _ALPHA_NUMBER = "matroska_block_additional", 15
"""What VP9 with alpha keeps beside its packets, and FFmpeg's number for it."""


@dataclass(frozen=True)
class Written:
    """A finished segment."""

    frames: int
    bytes: int
    sha256: str


class SegmentWriter:
    """Encode the frames of one segment with an encoder of its own.

    Args:
        path: The segment's file.
        coding: How pictures are coded.

    Attributes:
        encoder: The encoder; it counts the frames and keeps the notes.

    Raises:
        UsageError: If the encoder refuses its options.
        OSError: If the file cannot be written.
    """

    def __init__(self, path: Path, coding: Coding) -> None:
        self.path = path
        self.encoder = PictureEncoder.alone(coding)
        self._digest = hashlib.sha256()
        self._size = 0
        self._file: BinaryIO = path.open("wb")
        base = coding.info.time_base
        head = {"time_base": str(base), "extradata": self.encoder.extradata.hex()}
        self._put(json.dumps(head).encode() + b"\n")

    def write(self, frame: Frame) -> None:
        """Encode one frame.

        Raises:
            OutputError: If the encoder fails or changes a timestamp.
            OSError: If the file cannot be written.
        """
        self._store(self._packets(lambda: self.encoder.encode(frame)))

    def finish(self) -> Written:
        """Write the packets that the encoder still holds and close the file."""
        self._store(self._packets(self.encoder.finish))
        self.encoder.close()
        self._file.close()
        return Written(self.encoder.frames, self._size, self._digest.hexdigest())

    def discard(self) -> None:
        """Remove the file."""
        self.encoder.close()
        with suppress(OSError):  # what could not be written is not wanted
            self._file.close()
        self.path.unlink(missing_ok=True)

    def _packets(self, make: Callable[[], list[av.Packet]]) -> list[av.Packet]:
        try:
            return make()
        except FFmpegError as error:
            reason = getattr(error, "strerror", None) or error
            raise OutputError(f"the encoder fails ({reason}); choose another --codec") from error

    def _store(self, packets: list[av.Packet]) -> None:
        for packet in packets:
            alpha = bytes(packet.get_sidedata(_ALPHA)) if packet.has_sidedata(_ALPHA) else b""
            times = (packet.pts, packet.dts, packet.duration or 0)
            self._put(_RECORD.pack(*times, packet.is_keyframe, len(alpha), packet.size))
            self._put(alpha)
            self._put(bytes(packet))

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self._size += len(data)


class Segment:
    """Read a segment's file.

    Attributes:
        extradata: What a decoder must know before the first packet.
        time_base: Of the packets' times.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            head = json.loads(file.readline())
            self._begin = file.tell()
        self.extradata = bytes.fromhex(head["extradata"])
        self.time_base = Fraction(head["time_base"])

    def packets(self) -> Iterator[av.Packet]:
        """Yield the packets in the order of decoding."""
        for file, pts, dts, duration, key, alpha, size in self._records():
            beside = file.read(alpha)
            packet = av.Packet(file.read(size))
            packet.pts, packet.dts, packet.duration = pts, dts, duration
            packet.time_base, packet.is_keyframe = self.time_base, bool(key)
            if beside:
                packet.set_sidedata(_side_data(beside))
            yield packet

    def times(self) -> list[tuple[int, int]]:
        """Return (pts, dts) of all packets in the order of decoding; no packet is read."""
        found = []
        for file, pts, dts, _, _, alpha, size in self._records():
            found.append((pts, dts))
            file.seek(alpha + size, 1)
        return found

    def _records(self) -> Iterator[tuple[Any, ...]]:
        with self.path.open("rb") as file:
            file.seek(self._begin)
            while record := file.read(_RECORD.size):
                yield (file, *_RECORD.unpack(record))


def _side_data(alpha: bytes) -> PacketSideData:
    make: Any = PacketSideData  # its stub lacks the constructor
    data = make(_ALPHA_NUMBER, len(alpha))
    data.update(alpha)
    return data


def join(segments: Sequence[Segment], output: OutputFile) -> None:
    """Copy the packets of all segments into the new file, with the decoding times of one encoder.

    An encoder restarted in mid-film begins with decoding times that lie before those its
    predecessor ended with. They are counted anew: a packet is decoded when the one `delay` places
    before it in the order of display is shown, which is what encoders do. Times of display stay.

    Args:
        segments: In the order of time, not empty.
        output: The new file.

    Raises:
        OutputError: If a segment needs other decoder settings than the file announces, or the file
            cannot be written.
    """
    announced = bytes(output.video.codec_context.extradata or b"")
    if any(segment.extradata != announced for segment in segments):
        raise OutputError(
            f"{output.path}: the encoder has changed since the first segment; start anew with"
            " --overwrite"
        )
    first = segments[0].times()
    beginning = min(pts for pts, _ in first)
    lead = [dts for _, dts in first if dts < beginning]
    delay = max(len(lead), *(_reordering(segment.times()) for segment in segments))
    start = lead[0] if lead else beginning
    upcoming = deque(range(start - (delay - len(lead)), start))
    upcoming.extend(lead)
    for segment in segments:
        upcoming.extend(sorted(pts for pts, _ in segment.times()))
        for packet in segment.packets():
            if len(segments) > 1:
                packet.dts = upcoming.popleft()
            output.mux([packet])


def _reordering(times: list[tuple[int, int]]) -> int:
    """Return how many packets later than in the order of display a packet is decoded, at most."""
    rank = {pts: place for place, pts in enumerate(sorted(pts for pts, _ in times))}
    return max((place - rank[pts] for place, (pts, _) in enumerate(times)), default=0)
