"""Decode a video file, one frame at a time, each with its own timestamp."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Self

import av
import av.error

from restore.errors import InputError
from restore.io.demux import MAX_PIXELS, open_media
from restore.io.formats import Layout, layout_of, unpack
from restore.io.frame import ColorSpec, Frame
from restore.io.probe import (
    VideoInfo,
    dolby_vision_profile,
    read_color,
    read_display_matrix,
    read_mastering,
    show,
)
from restore.io.sequence import SequenceSource, is_sequence
from restore.io.timestamps import Timestamps, raw_stamp

Seconds = Fraction | int | float


class VideoReader:
    """Read the frames of a video file, an image, a pattern (``%05d.png``) or a folder of images.

    Iterate once; frames come in presentation order with strictly increasing timestamps. Damaged
    packets are skipped and counted. Planes are read-only views at the file's own depth.

    With `start`, frames before it are dropped (exact to the frame, whatever the key frames) and all
    timestamps are moved so that `start` becomes 0; a `VideoWriter` cuts and moves the other streams
    alike. Without `start`, timestamps are the file's own.

    Args:
        path: File, printf-like pattern, or folder of images.
        start: Seconds from the beginning of the file as a player shows it.
        duration: Seconds after which reading ends.
        input_matrix: Overrides the matrix tag: 'bt601', 'bt709', 'bt2020', ...
        rate: Frames per second of image sequences.

    Attributes:
        info: What is known about the video.
        damaged: Number of packets or pictures that could not be decoded or were incomplete.
        notes: Lines worth telling the user, in the order they arose.

    Raises:
        InputError: If the file cannot be read or holds no picture that can be decoded.
        UsageError: If `input_matrix` is unknown.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        start: Seconds | None = None,
        duration: Seconds | None = None,
        input_matrix: str | None = None,
        rate: Fraction = Fraction(25),
    ) -> None:
        self.path = Path(path)
        self.start = None if start is None else Fraction(start)
        self.duration = None if duration is None else Fraction(duration)
        self.notes: list[str] = []
        self.damaged = 0
        self._matrix = input_matrix
        self._container: av.container.InputContainer | None = None
        self.video_index: int | None = None
        """Index of the decoded stream in the container; None for image sequences."""
        self.offset = Fraction(0)
        """Seconds that were taken from every timestamp (see `start`)."""
        self._resized = 0
        self._stamps = Timestamps(lambda picture: picture.duration or self._default_step())
        self._spec: tuple[str, Layout, ColorSpec] | None = None
        if is_sequence(self.path):
            source = SequenceSource(self.path, rate)
            self.files: list[Path] = source.files
            self._pictures: Iterator[av.VideoFrame] = source.pictures(self._count_damage)
        else:
            self.files = []
            self._pictures = self._open()
        try:
            first = next(self._pictures, None)
            if first is None:
                raise InputError(f"{self.path}: no picture can be decoded; try another copy of it")
            self._pictures = chain([first], self._pictures)
            self.info = self._probe(first)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._container is not None:
            self._container.close()
            self._container = None

    def __iter__(self) -> Iterator[Frame]:
        """Yield the frames in presentation order, once."""
        for picture, stamp in self._stamps.stamp(self._pictures):
            frame = self._frame(picture, stamp)
            if self._past_end(frame):
                break
            yield frame
        if self._resized:
            self.notes.append(
                f"{self._resized} frames of another size were scaled to"
                f" {self.info.width}x{self.info.height}, the size of the first"
            )
        if self._stamps.jumps:
            self.notes.append(f"timestamps jump back {self._stamps.jumps} times; continued in order")
        if self._stamps.moved:
            self.notes.append(f"{self._stamps.moved} timestamps did not increase; moved by one tick")

    def _open(self) -> Iterator[av.VideoFrame]:
        self._container = container = open_media(self.path)
        stream = container.streams.best("video")
        if stream is None:
            raise InputError(f"{self.path}: holds no video stream; give a file with video")
        if stream.codec_context is None:
            raise InputError(f"{self.path}: no decoder for its video codec; convert it first")
        self.video_index = stream.index
        # Frame threads would lose the pictures that follow the last error of a damaged file.
        stream.thread_type = "SLICE"
        stream.codec_context.options = {"max_pixels": str(MAX_PIXELS)}
        self.time_base = Fraction(stream.time_base)
        self._check_dolby_vision(container, stream.index)
        if self.start is not None:
            begin = Fraction(container.start_time or 0, av.time_base)
            self.offset = begin + self.start
            return self._seek_and_decode(container, stream, self.offset)
        return self._decode(container, stream)

    def _check_dolby_vision(self, container: av.container.InputContainer, index: int) -> None:
        profile = dolby_vision_profile(container, index)
        if profile == "5":
            raise InputError(
                f"{self.path}: Dolby Vision profile 5 has no ordinary picture; convert it to HDR10 first"
            )
        if profile is not None:
            self.notes.append(f"Dolby Vision profile {profile}: only its base layer is kept")

    def _decode(
        self, container: av.container.InputContainer, stream: av.VideoStream
    ) -> Iterator[av.VideoFrame]:
        """Decode to the end of the file; skip and count what cannot be decoded."""
        packets = container.demux(stream)
        while True:
            try:
                packet = next(packets, None)
            except (av.error.FFmpegError, OSError):
                # A demuxer error is the end of what can be read; the decoder may still hold frames.
                self._count_damage()
                packet = None
            if packet is not None and packet.has_sidedata("encryption_info"):
                raise InputError(f"{self.path}: the video is encrypted; give an unprotected copy")
            try:
                pictures = stream.codec_context.decode(packet)
            except av.error.EOFError:
                return
            except (av.error.FFmpegError, OSError):
                self._count_damage()
                pictures = []
            for picture in pictures:
                self.damaged += bool(picture.is_corrupt)
                yield picture
            if packet is None or packet.size == 0:
                return

    def _seek_and_decode(
        self, container: av.container.InputContainer, stream: av.VideoStream, target: Fraction
    ) -> Iterator[av.VideoFrame]:
        """Start at the last key frame that gives pictures before `target`; drop those."""
        wanted = target / self.time_base
        for margin in (Fraction(0), Fraction(10), None):
            try:
                place = int((target - margin) / self.time_base) if margin is not None else 0
                container.seek(place, stream=stream)
            except (av.error.FFmpegError, OSError):
                container.close()
                self._container = container = open_media(self.path)
                stream = container.streams[stream.index]
                margin = None
            pictures = self._decode(container, stream)
            first = next(pictures, None)
            time = None if first is None else raw_stamp(first)
            if margin is None or (time is not None and time <= wanted):
                break
        while first is not None:
            stamp = raw_stamp(first)
            if stamp is None or stamp >= wanted:
                yield first
                break
            first = next(pictures, None)
        yield from pictures

    def _count_damage(self) -> None:
        self.damaged += 1

    def _past_end(self, frame: Frame) -> bool:
        if self.duration is None or frame.time is None:
            return False
        begin = Fraction(0) if self.start is not None else self.info.start_time
        return frame.time >= begin + self.duration

    def _frame(self, picture: av.VideoFrame, stamp: int) -> Frame:
        info = self.info
        if (picture.width, picture.height) != (info.width, info.height):
            self._resized += 1
            picture = picture.reformat(width=info.width, height=info.height)
        layout, color = self._describe(picture)
        planes, alpha = unpack(picture, layout)
        return Frame(
            planes=planes,
            alpha=alpha,
            format=layout.format,
            color=color,
            pts=stamp - round(self.offset / self.time_base),
            time_base=self.time_base,
            duration=picture.duration or None,
            interlaced=picture.interlaced_frame,
        )

    def _describe(self, picture: av.VideoFrame) -> tuple[Layout, ColorSpec]:
        """Return layout and colour, read anew only when the decoder's layout changes."""
        name = picture.format.name
        if self._spec is None or self._spec[0] != name:
            layout = layout_of(name)
            color = read_color(picture, layout, show(picture)[0], self._matrix)
            self._spec = (name, layout, color)
        return self._spec[1], self._spec[2]

    def _default_step(self) -> int:
        rate = self.info.average_rate or Fraction(25)
        return max(1, round(1 / (rate * self.time_base)))

    def _probe(self, picture: av.VideoFrame) -> VideoInfo:
        if not self.files:
            return self._probe_stream(picture)
        self.time_base = Fraction(picture.time_base)
        layout, color = self._describe(picture)
        rate = 1 / self.time_base
        return VideoInfo(
            width=picture.width,
            height=picture.height,
            format=layout.format,
            color=color,
            time_base=self.time_base,
            average_rate=rate,
            frame_count=len(self.files),
            duration=len(self.files) / rate,
            rotation=0,
            sample_aspect_ratio=None,
            codec=self.files[0].suffix.lower().lstrip("."),
            container="images",
            native_format=picture.format.name,
        )

    def _probe_stream(self, picture: av.VideoFrame) -> VideoInfo:
        assert self._container is not None and self.video_index is not None
        stream = self._container.streams[self.video_index]
        context = stream.codec_context
        layout, color = self._describe(picture)
        rate = stream.average_rate or stream.guessed_rate
        seconds = None
        if stream.duration is not None:
            seconds = stream.duration * self.time_base
        elif self._container.duration is not None:
            seconds = Fraction(self._container.duration, av.time_base)
        count = stream.frames or (round(seconds * rate) if seconds and rate else None)
        stamp = raw_stamp(picture)
        matrix = read_display_matrix(picture)
        return VideoInfo(
            width=picture.width,
            height=picture.height,
            format=layout.format,
            color=color,
            time_base=self.time_base,
            average_rate=None if rate is None else Fraction(rate),
            frame_count=count,
            duration=seconds,
            rotation=picture.rotation,
            sample_aspect_ratio=stream.sample_aspect_ratio or None,
            codec=context.codec.canonical_name,
            container=self._container.format.name,
            profile=context.profile,
            field_order=show(picture)[1],
            display_matrix=matrix,
            mastering=read_mastering(picture),
            native_format=picture.format.name,
            start_time=(stamp or 0) * self.time_base - self.offset,
            metadata=dict(self._container.metadata),
        )
