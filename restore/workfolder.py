"""The folder beside a target that keeps what is finished until the whole is.

It holds the finished segments, a manifest, and the state to go on from. The manifest is replaced
in one step after each segment, so that it is true whenever the program is killed.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

from restore.errors import OutputError, UsageError
from restore.handover import Handover
from restore.io.packets import Segment, Written
from restore.weights.manifest import write_whole

_MANIFEST = "manifest.json"
_SAMPLES, _SAMPLE = 16, 1 << 16


def work_folder(target: Path) -> Path:
    """Return the hidden folder that belongs to a target, beside it."""
    digest = hashlib.sha256(target.name.encode(errors="surrogateescape")).hexdigest()[:8]
    return target.with_name(f".restore-work-{digest}-{target.name[:40]}")


def fingerprint(path: Path) -> str:
    """Return a hash that tells one input from another, whatever its name and place.

    It covers the size and 16 samples from head to tail; of a folder or pattern of pictures, the
    names and sizes.
    """
    digest = hashlib.sha256()
    if path.is_file():
        size = path.stat().st_size
        digest.update(str(size).encode())
        with path.open("rb") as file:
            for number in range(_SAMPLES):
                file.seek(max(size - _SAMPLE, 0) * number // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE))
    else:
        folder = path if path.is_dir() else path.parent
        for picture in sorted(folder.iterdir()):
            digest.update(f"{picture.name} {picture.stat().st_size}\n".encode())
    return digest.hexdigest()


class WorkFolder:
    """The finished segments of one run, and of the run that it goes on with.

    Args:
        target: The file to be written in the end.
        identity: What must be the same for segments to fit together: input, settings, weights,
            versions, by name.
        resume: Go on with what an interrupted run left.
        overwrite: Throw it away.

    Attributes:
        path: The folder.
        parts: The finished segments.
        complete: Whether they are all there are.
        notes: Lines worth telling the user.

    Raises:
        UsageError: If there is something left and neither is asked for, or it is of other settings.
        OutputError: If the folder cannot be written, is damaged, or in use.
    """

    def __init__(
        self, target: Path, identity: Mapping[str, Any], *, resume: bool, overwrite: bool
    ) -> None:
        self.target, self.path = target, work_folder(target)
        self.parts: list[Written] = []
        self.complete = False
        self._levels: tuple[float, ...] = ()
        self.notes: list[str] = []
        self._identity = json.loads(json.dumps(identity, default=_plain))
        try:
            self.path.mkdir(exist_ok=True)
            self._lock = self._locked()
            kept = self._read()
        except OSError as error:
            reason = error.strerror or error
            raise OutputError(
                f"{target}: its folder cannot be written ({reason}); choose another"
            ) from error
        try:
            self._take_over(kept, resume, overwrite)
        except BaseException:
            self._lock.close()
            raise

    @property
    def frames(self) -> int:
        """Frames finished."""
        return sum(part.frames for part in self.parts)

    def segment_path(self, number: int) -> Path:
        """Return the file of a segment, counted from 0."""
        return self.path / f"{number:05d}.packets"

    def segments(self) -> list[Segment]:
        """Open the finished segments."""
        return [Segment(self.segment_path(number)) for number in range(len(self.parts))]

    def handover(self) -> Handover:
        """Return the state after the last finished segment, or the one to begin with.

        Raises:
            OutputError: If it is damaged.
        """
        if self.complete or not self.parts:
            return Handover(levels=self._levels)
        try:
            return Handover.load(self._state(len(self.parts)))
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise self._damaged() from error

    def add(self, part: Written, handover: Handover, *, last: bool) -> None:
        """Note a finished segment, and where to go on unless it was the last.

        Raises:
            OSError: If that cannot be written.
        """
        count = len(self.parts) + 1
        if not last:
            handover.save(self._state(count))
        self.parts.append(part)
        self.complete = last
        listed = [dataclasses.asdict(part) for part in self.parts]
        noted = {
            "identity": self._identity,
            "complete": last,
            "levels": handover.levels,
            "segments": listed,
        }
        try:
            write_whole(self.path / _MANIFEST, json.dumps(noted, indent=1).encode())
        except BaseException:
            self.parts.pop()
            raise
        self._state(count - 1).unlink(missing_ok=True)

    def close(self, *, keep: bool) -> None:
        """Let the folder go; remove it unless something in it is to be kept."""
        if not keep:
            shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()

    def _state(self, number: int) -> Path:
        return self.path / f"state-{number:05d}.npz"

    def _locked(self) -> IO[bytes]:
        """Keep other runs out; the system lets go of the lock however this one ends."""
        lock = (self.path / "lock").open("wb")
        try:
            import fcntl
        except ImportError:  # Windows: two runs for one target are not noticed there
            return lock
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise OutputError(
                f"{self.target}: another run is writing it; wait for its end or choose another name"
            ) from None
        return lock

    def _read(self) -> dict[str, Any] | None:
        try:
            noted = json.loads((self.path / _MANIFEST).read_bytes())
            [Written(**part) for part in noted["segments"]]
            return noted
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            raise self._damaged() from None

    def _take_over(self, noted: dict[str, Any] | None, resume: bool, overwrite: bool) -> None:
        parts = [Written(**part) for part in noted["segments"]] if noted else []
        frames = sum(part.frames for part in parts)
        if noted is not None and resume:
            self._compare(noted["identity"])
            for number, part in enumerate(parts):
                if not _intact(self.segment_path(number), part):
                    raise self._damaged()
            self.parts, self.complete = parts, bool(noted["complete"])
            self._levels = tuple(noted["levels"])
            self.notes.append(f"{frames} frames were taken over from the interrupted run")
            return
        if parts and not overwrite:
            raise UsageError(
                f"{self.target}: an interrupted run left {frames} frames in {self.path}; add"
                " --resume to go on with them or --overwrite to start anew"
            )
        if parts:
            self.notes.append(f"{frames} frames of an interrupted run were thrown away")
        for file in self.path.iterdir():
            if file.name != "lock":
                file.unlink()

    def _compare(self, identity: Mapping[str, Any]) -> None:
        names = {*identity, *self._identity}
        differing = [n for n in names if identity.get(n) != self._identity.get(n)]
        if differing:
            raise UsageError(
                f"{self.target}: the interrupted run had another {', '.join(sorted(differing))};"
                " give the same, or --overwrite instead of --resume to start anew"
            )

    def _damaged(self) -> OutputError:
        return OutputError(f"{self.path}: is damaged; remove this folder and start anew")


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, set | frozenset) else str(value)


def _intact(path: Path, part: Written) -> bool:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size != part.bytes:
                return False
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError:
        return False
    return digest.hexdigest() == part.sha256
