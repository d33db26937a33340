"""The new file while it grows: the coded video and, packet by packet, all that is copied."""

import os
from array import array
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Self

import av
import av.error
from av.stream import Disposition

from restore.errors import OutputError, RestoreError
from restore.io.demux import open_media
from restore.io.encode import Coding
from restore.io.encoders import plan_encoder
from restore.io.matroska import set_pixel_aspect
from restore.io.reader import VideoReader
from restore.io.streams import StreamCopier
from restore.io.target import MATROSKA, keep_foreign_tags, open_encoder, open_output, unwritable

_EXACT = ("mp4", "mov", "ipod", "matroska", "webm")
"""Containers that hold any timestamp, to a tick of their own."""


@dataclass(frozen=True)
class Encoding:
    """What is asked of the encoder; None leaves the choice to `plan_encoder`."""

    codec: str | None = None
    crf: float | None = None
    pix_fmt: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    """The encoder's own."""
    size: tuple[int, int] | None = None
    """Width and height, if they differ from the source's."""
    interlaced: bool | None = None
    """Whether the frames are interlaced; None: as the source."""


class OutputFile:
    """A media file under a hidden name that gets its own when it is complete.

    Args:
        path: The final name.
        partial: The name until then, in the same file system, with the same ending; None tries out
            in memory whether the file can be written, and leaves nothing.
        source: Where everything but the video comes from.
        encoding: What is asked of the encoder.

    Attributes:
        coding: How the video is coded.
        video: Its stream, with an opened encoder.
        notes: Lines worth telling the user.

    Raises:
        UsageError: Unknown encoder, pixel format or encoder option.
        OutputError: The container cannot be written or does not hold these streams.
    """

    def __init__(
        self, path: Path, partial: Path | None, source: VideoReader, encoding: Encoding
    ) -> None:
        self.path, self.partial = path, partial
        self.notes: list[str] = []
        self._copier: StreamCopier | None = None
        self._stamps = array("q")
        self._open = True
        self._output = open_output(partial, path, source.info.time_base)
        try:
            self._open_streams(source, encoding)
        except BaseException:
            self.discard()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def mux(self, packets: list[av.Packet]) -> None:
        """Write packets of the video, and those of the other streams that go before them.

        Raises:
            OutputError: If the file cannot be written, for example on a full disk.
        """
        try:
            for packet in packets:
                if self._copier is not None and packet.dts is not None:
                    self._copier.pump(self._output, packet.dts * packet.time_base)
                self._stamps.append(packet.pts)
                packet.stream = self.video
                self._output.mux_one(packet)
        except (av.error.FFmpegError, OSError) as error:
            raise unwritable(self.path, error) from error

    def finish(self) -> None:
        """Write the rest and give the file its name.

        Raises:
            OutputError: If it cannot be written, or does not hold every frame at its time.
        """
        assert self.partial is not None
        try:
            if self._copier is not None:
                self._copier.pump(self._output, None)
                self._copier.close()
                self.notes.extend(self._copier.notes)
                self._copier = None
            self._output.close()
            self._say_aspect(self.partial)
            self._check_times(self.partial)
            os.replace(self.partial, self.path)
        except (av.error.FFmpegError, OSError) as error:
            self.discard()
            raise unwritable(self.path, error) from error
        except BaseException:
            self.discard()
            raise
        self._open = False

    def discard(self) -> None:
        """Remove what was written so far; after `finish` there is nothing to do."""
        if not self._open:
            return
        self._open = False
        if self._copier is not None:
            self._copier.close()
        try:
            self._output.close()
        except (av.error.FFmpegError, OSError, ValueError):
            pass  # the file is removed anyway
        finally:
            if self.partial is not None:
                self.partial.unlink(missing_ok=True)

    def _open_streams(self, source: VideoReader, encoding: Encoding) -> None:
        output = self._output
        coding = self._plan(source, encoding)
        if source.video_index is not None:
            end = None
            if source.duration is not None:
                begin = source.offset if source.start is not None else source.info.start_time
                end = begin + source.duration
            self._copier = StreamCopier(
                source.path,
                source.video_index,
                source.offset,
                end,
                cut=source.start is not None,
                leave_out=source.leave_out,
            )
            self._copier.add_streams(output, before=True)
        self.notes.extend(coding.plan.notes)
        self.coding = coding
        before = [s for s in output.streams.video if not s.disposition & Disposition.attached_pic]
        self._ordinal = len(before)
        self.video, notes = coding.add_to(output)
        self.notes.extend(notes)
        if self._copier is not None:
            self._copier.add_streams(output, before=False)
            self._copier.copy_header(output, self.video)
            keep_foreign_tags(output, output.metadata)
        open_encoder(self.video.codec_context, coding.plan)
        try:
            output.start_encoding()
        except (av.error.FFmpegError, ValueError, OSError) as error:
            raise OutputError(
                f"{self.path}: {output.format.name} does not hold these streams;"
                " write to a .mkv file"
            ) from error

    def _plan(self, source: VideoReader, encoding: Encoding) -> Coding:
        info, container = source.info, self._output.format.name
        interlaced = encoding.interlaced
        if interlaced is None:
            interlaced = info.field_order != "progressive"
        size = encoding.size or (info.width, info.height)
        try:
            plan = plan_encoder(
                info,
                container,
                size,
                codec=encoding.codec,
                crf=encoding.crf,
                pix_fmt=encoding.pix_fmt,
                options=dict(encoding.options),
                interlaced=interlaced,
            )
        except OutputError as error:
            raise OutputError(f"{self.path}: {error}") from error
        return Coding.of(plan, info, size, container)

    def _say_aspect(self, path: Path) -> None:
        """Describe the shape of the pixels where only the container can: PyAV does not reach it."""
        coding = self.coding
        aspect = coding.info.sample_aspect_ratio or Fraction(1)
        if aspect == 1 or coding.container not in MATROSKA:
            return
        ratios = coding.container == "matroska"
        if not set_pixel_aspect(path, self._ordinal, aspect, coding.size, ratios=ratios):
            self.notes.append(
                f"{coding.container} does not say that pixels are {aspect} wide; a .mov file can"
            )

    def _check_times(self, path: Path) -> None:
        """Read the times of the finished video back and compare them with those that were meant."""
        base = self.coding.info.time_base
        try:
            with open_media(path) as written:
                covers = Disposition.attached_pic
                videos = [s for s in written.streams.video if not s.disposition & covers]
                stream = videos[self._ordinal]
                tick = Fraction(stream.time_base)
                packets = [p.pts for p in written.demux(stream) if p.size]
        except (RestoreError, IndexError, av.error.FFmpegError):
            packets = []
        exact = self.coding.container in _EXACT and self.coding.joinable
        if exact and len(packets) != len(self._stamps):
            raise OutputError(
                f"{self.path}: {len(packets)} frames can be read back of {len(self._stamps)};"
                " please report this"
            )
        # Some have no time of their own, such as those before the time 0 of Matroska.
        stamps = sorted(pts for pts in packets if pts is not None)
        if not stamps or len(stamps) != len(self._stamps):
            return
        pairs = zip(stamps, sorted(self._stamps), strict=True)
        error = max(abs(there * tick - here * base) for there, here in pairs)
        if error > max(tick, base):
            self.notes.append(
                f"{self.coding.container} moves frames by up to {float(error):.3f} s;"
                " .mkv keeps their times"
            )
