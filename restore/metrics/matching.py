"""Brings the frames of several files together by their timestamps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from restore.errors import InputError, UsageError
from restore.io import Frame, VideoReader

ALIGNMENTS = ("pts", "index")


@dataclass
class _Cursor:
    """One file beside the reference: its next frame and what did not match so far."""

    path: Path
    frames: Iterator[Frame]
    shift: Fraction = Fraction(0)
    """Seconds to add to its timestamps to get the reference's."""
    missing: int = 0
    surplus: int = 0

    def __post_init__(self) -> None:
        self.next = next(self.frames, None)

    def advance(self) -> None:
        self.next = next(self.frames, None)

    def take(self, time: Fraction, tolerance: Fraction) -> Frame | None:
        """Return the frame shown at a time of the reference, dropping earlier ones."""
        while self.next is not None and _time(self.next) + self.shift < time - tolerance:
            self.surplus += 1
            self.advance()
        if self.next is None or _time(self.next) + self.shift > time + tolerance:
            self.missing += 1
            return None
        found = self.next
        self.advance()
        return found


def _time(frame: Frame) -> Fraction:
    return Fraction(0) if frame.time is None else frame.time


class Matcher:
    """Iterates over the frames of a reference, each with the frames that other files show then.

    Frames belong together when their timestamps differ by less than half a frame. A file that
    starts at another time is compared from its first frame. Image sequences have no timing of their
    own and are counted instead.

    Args:
        reference: Open reader.
        others: Open readers of the same picture size.
        enlarged: Whether the others may all be larger, by the same whole factor.
        align: 'pts', or 'index' to count frames in all files.

    Attributes:
        notes: What did not match, one line each; complete after the iteration.
        scale: Side of the others' pictures over that of the reference's; 1 unless `enlarged`.

    Raises:
        InputError: If a file has another picture size than the reference.
        UsageError: If `align` is unknown.
    """

    def __init__(
        self,
        reference: VideoReader,
        others: Sequence[VideoReader],
        *,
        align: str = "pts",
        enlarged: bool = False,
    ) -> None:
        if align not in ALIGNMENTS:
            raise UsageError(f"align must be one of {', '.join(ALIGNMENTS)}, not {align!r}")
        self._reference = reference
        self._others = others
        width, height = reference.info.width, reference.info.height
        self.scale = max(others[0].info.width // width, 1) if enlarged and others else 1
        for other in others:
            size = (other.info.width, other.info.height)
            if size != (width * self.scale, height * self.scale):
                raise InputError(
                    f"{other.path}: {size[0]}x{size[1]} pixels, but "
                    f"{reference.path} has {width}x{height}; bring both to one size first"
                )
        self.notes: list[str] = []
        if self.scale > 1:
            self.notes.append(f"{reference.path}: enlarged bicubically by {self.scale} to compare")
        images = [reader.path for reader in (reference, *others) if reader.video_index is None]
        self._count = align == "index" or bool(images)
        if images and align == "pts" and len(images) <= len(others):
            self.notes.append(f"{images[0]}: images have no timing; frames are compared by number")

    def __iter__(self) -> Iterator[tuple[Frame, list[Frame | None]]]:
        """Yield each frame of the reference with the matching frames, None where there is none."""
        cursors = [_Cursor(other.path, iter(other)) for other in self._others]
        frames = iter(self._reference)
        current = next(frames, None)
        count, step = 0, self._first_step()
        while current is not None:
            following = next(frames, None)
            if following is not None and _time(following) > _time(current):
                step = _time(following) - _time(current)
            if count == 0:
                self._shift_starts(current, cursors, step)
            if self._count:
                yield current, [_take_next(cursor) for cursor in cursors]
            else:
                time = _time(current)
                yield current, [cursor.take(time, step / 2) for cursor in cursors]
            count += 1
            current = following
        for cursor in cursors:
            self._conclude(cursor, count)

    def _first_step(self) -> Fraction:
        rate = self._reference.info.average_rate
        return 1 / rate if rate else Fraction(1, 25)

    def _shift_starts(self, first: Frame, cursors: Sequence[_Cursor], step: Fraction) -> None:
        for cursor in cursors:
            if self._count or cursor.next is None:
                continue
            shift = _time(first) - _time(cursor.next)
            if abs(shift) > step / 2:
                cursor.shift = shift
                self.notes.append(
                    f"{cursor.path}: starts at {float(_time(cursor.next)):.3f} s, the reference at "
                    f"{float(_time(first)):.3f} s; compared from the first frame of each"
                )

    def _conclude(self, cursor: _Cursor, count: int) -> None:
        while cursor.next is not None and self._reference.duration is None:
            cursor.surplus += 1
            cursor.advance()
        if cursor.missing:
            self.notes.append(
                f"{cursor.path}: nothing to compare with {cursor.missing} of {count} frames of "
                f"{self._reference.path}"
            )
        if cursor.surplus:
            self.notes.append(
                f"{cursor.path}: {cursor.surplus} frames that {self._reference.path} does not have"
            )


def _take_next(cursor: _Cursor) -> Frame | None:
    found = cursor.next
    if found is None:
        cursor.missing += 1
    else:
        cursor.advance()
    return found
