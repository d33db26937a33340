"""Turn errors into one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

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
    if traceback or os.environ.get("RESTORE_DEBUG"):
        return command()
    try:
        code = command()
        sys.stdout.flush()
    except RestoreError as error:
        return _say(prog, " ".join(str(error).split()), error.exit_code)
    except KeyboardInterrupt:
        return _say(prog, "stopped before the end.", InterruptedRun.exit_code)
    except BrokenPipeError:
        # Nobody reads any more; Python's own flush at exit must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except ImportError as error:
        return _say(prog, missing_library_hint(str(error)), RestoreError.exit_code)
    except MemoryError:
        return _say(prog, "out of memory. Try --tile 256 or --preset fast.", RestoreError.exit_code)
    except Exception as error:
        what = " ".join(str(error).split())
        return _say(
            prog,
            f"unexpected {type(error).__name__}: {what}. Run again with RESTORE_DEBUG=1 set and "
            "report what it prints.",
            RestoreError.exit_code,
        )
    return code


def _say(prog: str, message: str, code: int) -> int:
    print(f"{prog}: {message}", file=sys.stderr)
    return code
