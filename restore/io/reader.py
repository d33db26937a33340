"""Read a video, one frame at a time, each with its own timestamp."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Self

import av

from restore.errors import InputError
from restore.io.decode import FileSource
from restore.io.formats import Layout, layout_of, unpack
from restore.io.frame import ColorSpec, Frame
from restore.io.probe import VideoInfo, probe, read_color, show
from restore.io.sequence import SequenceSource, is_sequence
from restore.io.timestamps import Timestamps

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
        notes: Lines worth telling the user, in the order they arose.
        video_index: Index of the decoded stream in the container; None for image sequences.
        offset: Seconds that were taken from every timestamp (see `start`).

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
        self._matrix = input_matrix
        self._resized = 0
        self._spec: tuple[str, Layout, ColorSpec] | None = None
        self._stamps = Timestamps(lambda picture: picture.duration or self._default_step())
        self._source: FileSource | SequenceSource
        if is_sequence(self.path):
            self._source = SequenceSource(self.path, rate)
        else:
            self._source = FileSource(self.path)
        self.notes = self._source.notes
        self.video_index = self._source.index
        self.time_base = self._source.time_base
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    @property
    def damaged(self) -> int:
        """Number of packets or pictures that could not be decoded or were incomplete."""
        return self._source.damaged

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
        self._source.close()

    def __iter__(self) -> Iterator[Frame]:
        """Yield the frames in presentation order, once."""
        for picture, stamp in self._stamps.stamp(self._pictures):
            frame = self._frame(picture, stamp)
            if self._past_end(frame):
                break
            yield frame
        self._report()

    def _begin(self) -> None:
        """Decode the first picture: only it tells layout and colour for certain."""
        self.offset = Fraction(0)
        if self.start is None:
            self._pictures = self._source.pictures()
        else:
            self.offset = self._source.begin + self.start
            self._pictures = self._source.pictures_from(self.offset)
        first = next(self._pictures, None)
        if first is None:
            what = "no picture can be decoded; try another copy of it"
            if self.start is not None and not self.damaged:
                what = "it ends before the start asked for; give an earlier --start"
            raise InputError(f"{self.path}: {what}")
        self._pictures = chain([first], self._pictures)
        layout, color = self._describe(first)
        facts = self._source.facts()
        self.info: VideoInfo = probe(first, layout, color, facts, self.time_base, self.offset)

    def _report(self) -> None:
        if self._resized:
            size = f"{self.info.width}x{self.info.height}"
            self.notes.append(f"{self._resized} frames of another size were scaled to {size}")
        if self._stamps.jumps:
            self.notes.append(f"time jumps back {self._stamps.jumps} times; continued in order")
        if self._stamps.moved:
            self.notes.append(f"{self._stamps.moved} timestamps did not increase; moved by a tick")

    def _past_end(self, frame: Frame) -> bool:
        if self.duration is None or frame.time is None:
            return False
        begin = Fraction(0) if self.start is not None else self.info.start_time
        return frame.time >= begin + self.duration

    def _frame(self, picture: av.VideoFrame, stamp: int) -> Frame:
        info = self.info
        interlaced, duration = picture.interlaced_frame, picture.duration or None
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
            duration=duration,
            interlaced=interlaced,
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
