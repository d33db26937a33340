"""Read a video, one frame at a time, each with its own timestamp."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Self

import av

from restore.errors import InputError, UsageError
from restore.io.decode import FileSource
from restore.io.demux import MAX_PIXELS, PIPE
from restore.io.fields import DEINTERLACE, ORDERS, FieldWatch, Stamped, deinterlaced
from restore.io.formats import Layout, layout_of, unpack
from restore.io.frame import ColorSpec, Frame
from restore.io.probe import VideoInfo, probe, read_color, show
from restore.io.sequence import SequenceSource, is_animated_webp, is_sequence
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
        path: File, printf-like pattern, folder of images, or ``-`` for y4m on standard input.
        start: Seconds from the beginning of the file as a player shows it.
        duration: Seconds after which reading ends.
        input_matrix: Overrides the matrix tag: 'bt601', 'bt709', 'bt2020', ...
        rate: Frames per second of image sequences.
        deinterlace: 'auto' makes progressive pictures of those flagged as interlaced, 'on' of all;
            one frame for one frame.
        strict: Raise an error at the first damage instead of counting it.
        max_pixels: Pixels of the largest picture that is decoded; None for 8192 x 8192.
        leave_out: Kinds of other streams that a `VideoWriter` does not copy: 'audio', 'subtitle'.

    Attributes:
        info: What is known about the video.
        notes: Lines worth telling the user, in the order they arose.
        video_index: Index of the decoded stream in the container; None for image sequences.
        offset: Seconds that were taken from every timestamp (see `start`).

    Raises:
        InputError: If the file cannot be read or holds no picture that can be decoded.
        UsageError: If `input_matrix` or `deinterlace` is unknown.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        start: Seconds | None = None,
        duration: Seconds | None = None,
        input_matrix: str | None = None,
        rate: Fraction = Fraction(25),
        deinterlace: str = "off",
        strict: bool = False,
        max_pixels: int | None = None,
        leave_out: Collection[str] = (),
    ) -> None:
        if deinterlace not in DEINTERLACE:
            raise UsageError(f'deinterlace "{deinterlace}": use one of {", ".join(DEINTERLACE)}')
        self.strict, self.leave_out = strict, tuple(leave_out)
        self.path = Path(path)
        self.start = None if start is None else Fraction(start)
        self.duration = None if duration is None else Fraction(duration)
        self._matrix = input_matrix
        self._resized = 0
        self._spec: tuple[str, Layout, ColorSpec] | None = None
        self._stamps = Timestamps(lambda picture: picture.duration or self._default_step())
        self._source: FileSource | SequenceSource
        if self._means_pictures():
            self._source = SequenceSource(self.path, rate)
        else:
            self._source = FileSource(self.path, max_pixels or MAX_PIXELS)
        self.notes = self._source.notes
        self.video_index = None if self.path == PIPE else self._source.index
        self.time_base = self._source.time_base
        self.info: VideoInfo
        try:
            self._begin()
            self._choose_fields(deinterlace)
        except BaseException:
            self.close()
            raise

    def _means_pictures(self) -> bool:
        try:
            return is_sequence(self.path)
        except OSError as error:  # a folder that may not be entered, a name that is too long
            reason = f"cannot be read ({error.strerror}); check the path"
            raise InputError(f"{self.path}: {reason}") from error

    @property
    def damaged(self) -> int:
        """Number of packets or pictures that could not be decoded or were incomplete."""
        return self._source.damaged

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def __iter__(self) -> Iterator[Frame]:
        """Yield the frames in presentation order, once."""
        whole = True
        for picture, stamp in self._prepared():
            self._check_damage()
            frame = self._frame(picture, stamp)
            if self._past_end(frame):
                whole = False
                break
            yield frame
        self._report(whole)

    def _prepared(self) -> Iterator[Stamped]:
        """Stamp the pictures, bring them to one size, look at their fields, deinterlace."""
        pictures = self._watch.watch(self._sized(self._stamps.stamp(self._pictures)))
        return pictures if self._every is None else deinterlaced(pictures, self._every)

    def _choose_fields(self, deinterlace: str) -> None:
        """Decide whether to deinterlace: all pictures, the flagged ones, or (None) none."""
        order = self.info.field_order
        self._watch = FieldWatch(order)
        self._every: bool | None = None
        if deinterlace == "on" or (deinterlace == "auto" and order != "progressive"):
            self._every = deinterlace == "on"
            self.info = replace(self.info, field_order="progressive")
            what = f"interlaced, {ORDERS[order]}: " if order in ORDERS else ""
            self.notes.append(f"{what}deinterlaced, one frame for one frame")

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
            elif is_animated_webp(self.path):
                what = "WebP animations are not read; convert it to .apng, .gif or a video"
            raise InputError(f"{self.path}: {what}")
        self._pictures = chain([first], self._pictures)
        layout, color = self._describe(first)
        facts = self._source.facts()
        self.info = probe(first, layout, color, facts, self.time_base, self.offset)

    def _sized(self, pictures: Iterator[Stamped]) -> Iterator[Stamped]:
        """Scale pictures of another size to the first one's; the count is kept."""
        width, height = self.info.width, self.info.height
        for picture, stamp in pictures:
            if (picture.width, picture.height) != (width, height):
                self._resized += 1
                duration = picture.duration
                picture = picture.reformat(width=width, height=height)
                picture.duration = duration
            yield picture, stamp

    def _check_damage(self, missing: Fraction | int = 0) -> None:
        if self.strict and (self.damaged or missing):
            what = "is cut off" if missing else "is damaged"
            raise InputError(f"{self.path}: {what}; without --strict what is left is restored")

    def _report(self, whole: bool) -> None:
        self.notes.extend(self._watch.notes)
        missing = self._source.missing_end() if whole else 0
        self._check_damage(missing)
        if missing:
            seconds = f"{float(missing):.{0 if missing > 10 else 2}f}"
            self.notes.append(f"the input was cut off: {seconds} s of it are missing")
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
