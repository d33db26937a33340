"""Many inputs, one folder of outputs: find them, go through them, tell how each of them ended."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from restore.cli.guard import explain
from restore.cli.progress import as_clock
from restore.errors import InputError, InterruptedRun, OutputError, UsageError

VIDEOS = {
    ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".vob", ".ts", ".m2ts",
    ".mts", ".flv", ".wmv", ".asf", ".ogv", ".ogm", ".3gp", ".3g2", ".mxf", ".y4m", ".gif",
    ".apng", ".ivf", ".h264", ".264", ".h265", ".265", ".hevc", ".m2v", ".dv", ".nut", ".rm",
    ".rmvb", ".divx", ".f4v",
}  # fmt: skip
"""Endings of the files that are taken from a folder."""

Restore = Callable[[Path, Path], int]
"""Restores one file to another and returns the number of frames."""


@dataclass
class Outcome:
    """How one file ended."""

    source: Path
    target: Path
    state: str = "waiting"
    """waiting, done, skipped or failed."""
    frames: int = 0
    seconds: float = 0.0
    message: str = ""
    exit_code: int = 0


def find_inputs(names: Iterable[str]) -> list[Path]:
    """Turn file names, folders and patterns into the list of what is to be restored.

    A folder stands for the videos in it; without any, for the pictures in it, as one sequence.

    Raises:
        InputError: If a name stands for nothing.
    """
    found: list[Path] = []
    for name in names:
        if name == "-":
            raise UsageError("standard input is one stream: give an output instead of --out-dir")
        try:
            found += _meant_by(name)
        except OSError as error:
            raise InputError(f"{name}: cannot be read ({error.strerror}); check it") from error
    return list(dict.fromkeys(found))


def _meant_by(name: str) -> list[Path]:
    path = Path(name)
    if path.is_dir():
        return _in_folder(path)
    if path.exists() or not any(letter in name for letter in "*?["):
        return [path]
    matching = [Path(match) for match in sorted(glob.glob(name, recursive=True))]
    if not matching:
        raise InputError(f"{name}: no file matches; check the pattern")
    return [match for match in matching if match.is_file()]


def _in_folder(folder: Path) -> list[Path]:
    from restore.io.sequence import SUFFIXES

    files = [f for f in sorted(folder.iterdir()) if f.name[0] != "." and f.is_file()]
    videos = [file for file in files if file.suffix.lower() in VIDEOS]
    if not videos and not any(file.suffix.lower() in SUFFIXES for file in files):
        raise InputError(
            f"{folder}: holds neither videos nor pictures; folders in it are not entered, name them"
        )
    return videos or [folder]


def plan_outputs(sources: Sequence[Path], folder: Path) -> list[Outcome]:
    """Give every input its output in the folder, under the same name.

    Raises:
        UsageError: If two of them would have the same name, or an output be its own input.
    """
    taken: dict[str, Path] = {}
    plan = []
    for source in sources:
        target = folder / source.absolute().name
        if target.exists() and source.exists() and os.path.samefile(source, target):
            raise UsageError(f"--out-dir {folder}: holds the inputs; choose another folder")
        if target.name in taken:
            both = f"{taken[target.name]} and {source}"
            raise UsageError(f"{both} would become the same file in {folder}; do them apart")
        taken[target.name] = source
        plan.append(Outcome(source, target / "%05d.png" if source.is_dir() else target))
    return plan


def run_batch(
    plan: Sequence[Outcome],
    folder: Path,
    restore: Restore,
    clock: Callable[[], float],
    *,
    overwrite: bool = False,
    quiet: bool = False,
) -> int:
    """Restore one file after the other; a failure is told and does not stop the rest.

    Args:
        plan: From `plan_outputs`; filled in here.
        folder: Made if it is missing.
        restore: Restores one file.
        clock: Seconds.
        overwrite: Do files again that are there already.
        quiet: Tell failures only.

    Returns:
        The exit code: 0, or the failed files' own if they agree on it, or 1.

    Raises:
        OutputError: If the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror}); choose another") from error
    try:
        for number, item in enumerate(plan, 1):
            if not quiet:
                print(f"[{number}/{len(plan)}] {item.source}", file=sys.stderr, flush=True)
            _do(item, restore, clock, overwrite)
            if item.state == "failed":
                print(item.message, file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        if not quiet:
            print(table(plan), file=sys.stderr)
        raise
    if not quiet:
        print(table(plan), file=sys.stderr)
    codes = {item.exit_code for item in plan if item.state == "failed"}
    return codes.pop() if len(codes) == 1 else int(bool(codes))


def _do(item: Outcome, restore: Restore, clock: Callable[[], float], overwrite: bool) -> None:
    began = clock()
    try:
        pictures = "%" in item.target.name and item.source.is_dir()
        there = item.target.parent if pictures else item.target
        if there.exists() and not overwrite:
            item.state, item.message = "skipped", "exists already"
            return
        item.frames = restore(item.source, item.target)
        item.state = "done"
    except KeyboardInterrupt:
        item.state, item.exit_code = "failed", InterruptedRun.exit_code
        item.message = "stopped before its end"
        raise
    except Exception as error:
        item.state = "failed"
        item.message, item.exit_code = explain(error)
    item.seconds = clock() - began


def table(plan: Sequence[Outcome]) -> str:
    """Return a line for each file, and one for all of them."""
    rows = [("file", "result", "frames", "time", "")]
    for item in plan:
        done = item.state == "done"
        rows.append(
            (
                item.source.name or str(item.source),
                item.state,
                str(item.frames) if done else "",
                as_clock(item.seconds) if done else "",
                item.message,
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = []
    for name, state, frames, time, message in rows:
        aligned = f"{name:{widths[0]}}  {state:{widths[1]}}  {frames:>{widths[2]}}"
        lines.append(f"{aligned}  {time:>{widths[3]}}  {message}".rstrip())
    counts = [(sum(i.state == s for i in plan), s) for s in ("done", "skipped", "failed")]
    left = sum(item.state == "waiting" for item in plan)
    told = [f"{count} {state}" for count, state in counts if count]
    return "\n".join([*lines, ", ".join([*told, *([f"{left} not begun"] if left else [])])])
