"""Damage small files in every way, restore each in a child process, watch what comes of it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 30
"""Seconds of work after which a run counts as hanging."""
STANDSTILL = 300
"""Seconds on the clock after which it does, working or not; a shared machine may be slow."""
LARGEST = 16_000
"""Bytes of the largest file that is taken from a folder."""
ENDINGS = {0, 2, 3, 4}
"""Exit codes that damaged input may lead to."""


@dataclass
class Verdict:
    """What one damaged file led to."""

    number: int
    source: str
    code: int
    """Exit code; negative is the signal that ended the child."""
    told: str
    left: list[str]
    """Files in the output folder afterwards."""

    @property
    def problem(self) -> str:
        """Return what is wrong with it; empty if nothing is."""
        if self.code in (-signal.SIGPROF, -signal.SIGALRM):
            return "hangs"
        if self.code < 0:
            return f"crashes with signal {-self.code}"
        if self.code not in ENDINGS or "Traceback" in self.told or "unexpected" in self.told:
            return f"exit code {self.code}: {self.told}"
        if self.code and any(not name.startswith(".restore-") for name in self.left):
            return f"leaves {self.left} after an error"
        if self.code and self.told.count("\n") > 1:
            return f"says more than a line: {self.told}"
        return ""


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Return a damaged copy: bytes changed, parts cut, doubled, zeroed, or sizes made huge."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        kind, at = chance.randrange(7), chance.randrange(max(len(out), 1))
        # Headers are where the worst mistakes are made: half of all damage goes there.
        at = chance.randrange(min(len(out), 600)) if chance.random() < 0.5 and out else at
        length = chance.choice((1, 4, 16, 200))
        if kind == 0 and out:
            out[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            out[at : at + length] = chance.randbytes(length)
        elif kind == 2:
            del out[at : at + length]
        elif kind == 3:
            out[at:at] = out[at : at + length]
        elif kind == 4:
            out[at : at + length] = bytes(min(length, len(out) - at))
        elif kind == 5:
            out[at : at + 4] = chance.choice((b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0"))
        else:
            del out[chance.randrange(len(out) // 2, len(out) + 1) :]
    return bytes(out)


def run_child(source: Path, target: Path, log: Path) -> int:
    """Restore a file in a forked child; returns its exit code, or minus the signal that ended it.

    The packages are imported once, by the parent; a child costs milliseconds.
    """
    from restore.cli.denoise import main

    child = os.fork()
    if child == 0:
        code = 99
        try:
            signal.setitimer(signal.ITIMER_PROF, PATIENCE)
            signal.alarm(STANDSTILL)
            with log.open("w") as stream, contextlib.redirect_stderr(stream):
                code = main(["--strength", "0", "--codec", "ffv1", str(source), str(target)])
        except BaseException as error:  # told by its exit code and its name
            log.write_text(f"unexpected {error!r}")
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def fuzz(sources: list[Path], count: int, folder: Path, seed: int = 0) -> Iterator[Verdict]:
    """Yield the verdict on `count` damaged copies of small files.

    Args:
        sources: The files, taken in turn.
        count: Number of copies.
        folder: Takes the copies and outputs for a moment.
        seed: Decides what is damaged how.
    """
    import restore.pipeline  # noqa: F401  loaded here so that no child has to

    output, log = folder / "out", folder / "log"
    output.mkdir()
    for number in range(count):
        source = sources[number % len(sources)]
        chance = random.Random(f"{seed} {number}")
        damaged = folder / f"damaged{source.suffix}"
        damaged.write_bytes(mutate(source.read_bytes(), chance))
        code = run_child(damaged, output / "out.mkv", log)
        left = sorted(str(p.relative_to(output)) for p in output.rglob("*") if p.is_file())
        yield Verdict(number, source.name, code, log.read_text(errors="replace"), left)
        _empty(output)
        damaged.unlink()


def _empty(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


if __name__ == "__main__":
    import collections
    import tempfile

    where, number_of_files = Path(sys.argv[1]), int(sys.argv[2])
    chosen = sorted(p for p in where.rglob("*") if p.is_file() and 0 < p.stat().st_size < LARGEST)
    codes: collections.Counter[int] = collections.Counter()
    with tempfile.TemporaryDirectory() as place:
        for verdict in fuzz(chosen, number_of_files, Path(place)):
            codes[verdict.code] += 1
            if verdict.problem:
                print(verdict.number, verdict.source, verdict.problem, flush=True)
            if verdict.number % 100 == 99:
                print(verdict.number + 1, dict(codes), flush=True)
    print(f"{sum(codes.values())} files, exit codes {dict(codes)}")
