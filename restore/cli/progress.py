"""Show how far a run is: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from tqdm import tqdm

_FIRST_ESTIMATE = 1.0
_LINE_EVERY = 5.0


def as_clock(seconds: float) -> str:
    """Write seconds as 0:07, 12:05 or 1:02:03."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def describe(done: int, total: int | None, elapsed: float, before: int = 0) -> str:
    """Say frames, frames per second, and after the first second the time left and in all.

    Args:
        done: Frames finished.
        total: Frames in all; None if the file does not say.
        elapsed: Seconds since the first call.
        before: Frames among them that had been finished by an earlier run.

    Returns:
        Such as "48/240 frames, 12.3 fps, 0:16 left, 0:20 in all".
    """
    text = f"{done}/{total} frames" if total else f"{done} frames"
    if done <= before or elapsed < _FIRST_ESTIMATE:
        return text
    rate = (done - before) / elapsed
    text += f", {rate:.3g} fps"
    if total and total >= done:
        whole = elapsed + (total - done) / rate
        text += f", {as_clock(whole - elapsed)} left, {as_clock(whole)} in all"
    return text


class ProgressDisplay:
    """Show progress on a stream; call it with the frames done and the frames in all.

    On a terminal a bar; elsewhere a line after the first second and then every five. A context
    manager, so that the bar is gone before anything else is printed.

    Args:
        stream: Where to print; default: standard error, so that output can be piped.
        quiet: Print nothing.
        now: The clock, in seconds.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        quiet: bool = False,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._quiet, self._now = quiet, now
        self._began = now()
        self._next = self._began + _FIRST_ESTIMATE
        self._before: int | None = None
        self._bar: tqdm | None = None

    def __enter__(self) -> Self:
        self._began = self._now()
        self._next = self._began + _FIRST_ESTIMATE
        if not self._quiet and self._stream.isatty():
            self._open_bar()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, done: int, total: int | None) -> None:
        """Take the frames done and the frames in all, None if unknown."""
        if self._quiet:
            return
        now = self._now()
        if self._before is None:
            self._before = done - 1
        text = describe(done, total, now - self._began, self._before)
        if self._bar is not None:
            self._bar.total, self._bar.n = total, done
            self._bar.set_description_str(text)
        elif now >= self._next:
            self._next = now + _LINE_EVERY
            print(text, file=self._stream, flush=True)

    def _open_bar(self) -> None:
        from tqdm import tqdm

        self._bar = tqdm(
            desc="reading", bar_format="{bar:30} {desc}", file=self._stream, leave=False
        )
