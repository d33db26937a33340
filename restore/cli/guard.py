"""Turn errors into one line and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from restore.cli.system import missing_library_hint
from restore.errors import InterruptedRun, RestoreError

BROKEN_PIPE = 141
"""128 + SIGPIPE, as a shell reports a program whose reader has gone."""


def guarded(prog: str, command: Callable[[], int], *, traceback: bool = False) -> int:
    """Run a command; print what goes wrong in one line, after the name of the command.

    Args:
        prog: Name of the command.
        command: Does the work and returns the exit code.
        traceback: Let errors through, for developers; so does the environment's RESTORE_DEBUG.

    Returns:
        The exit code: the command's or the error's.
    """
    _open_closed_streams()
    if traceback or os.environ.get("RESTORE_DEBUG"):
        return command()
    try:
        with _stoppable():
            code = command()
            sys.stdout.flush()
    except KeyboardInterrupt as stop:
        text = "; ".join(["stopped before the end", *notes(stop)])
        return _say(prog, f"{text}.", InterruptedRun.exit_code)
    except BrokenPipeError:
        # Nobody reads any more; Python's own flush at exit must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Exception as error:
        return _say(prog, *explain(error))
    return code


def _open_closed_streams() -> None:
    """Give a program that was started without standard streams, as by `>&-`, empty ones.

    Otherwise the next file that is opened would take their place.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def explain(error: Exception) -> tuple[str, int]:
    """Return what to tell about an error, in one line, and the exit code that goes with it."""
    what = " ".join(str(error).split())
    if isinstance(error, RestoreError):
        return "; ".join([what, *notes(error)]), error.exit_code
    if isinstance(error, ImportError):
        return missing_library_hint(str(error)), RestoreError.exit_code
    if isinstance(error, MemoryError):
        return "out of memory. Try --tile 256 or --preset fast.", RestoreError.exit_code
    return (
        f"unexpected {type(error).__name__}: {what}. Run again with RESTORE_DEBUG=1 set and "
        "report what it prints.",
        RestoreError.exit_code,
    )


def notes(error: BaseException) -> list[str]:
    """Return what was added to an error on its way, such as what is kept of an interrupted run."""
    return getattr(error, "__notes__", [])


@contextmanager
def _stoppable() -> Iterator[None]:
    """Stop in good order at the first Ctrl-C or SIGTERM, and at once at the second."""

    def leave(number: int, frame: FrameType | None) -> None:
        os._exit(InterruptedRun.exit_code)

    def stop(number: int, frame: FrameType | None) -> None:
        for each in ours:
            signal.signal(each, leave)
        raise KeyboardInterrupt

    signals = (signal.SIGINT, signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return
    before = {each: signal.getsignal(each) for each in signals}
    ours = [each for each in signals if before[each] not in (None, signal.SIG_IGN)]
    try:
        for each in ours:
            signal.signal(each, stop)
        yield
    finally:
        for each in ours:
            signal.signal(each, before[each])


def _say(prog: str, message: str, code: int) -> int:
    print(f"{prog}: {message}", file=sys.stderr)
    return code
