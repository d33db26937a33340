"""A cache of decoded, downscaled clips: one memory-mapped .npy and one .json for each.

Workers and processes share the folder without locks: each writes temporary files and renames them,
the .json last, so that a clip is either complete or absent. Two that decode the same clip at the
same time do the work twice and end with the same bytes.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from restore.analyse import find_cuts
from restore.data.sampling import EnergyArray
from restore.errors import InputError

ByteArray = npt.NDArray[np.uint8]
Decode = Callable[[], Iterable[ByteArray]]

_VERSION = 2
_SMALL = 64


@dataclass(frozen=True)
class Clip:
    """Hold one decoded clip, in memory or memory-mapped."""

    name: str
    shots: tuple[tuple[int, int], ...]
    """First frame and end (exclusive) of every shot."""
    energy: EnergyArray
    """(T - 1,) mean absolute difference of consecutive frames, in 8-bit levels."""
    decoder: str
    """Library and version that decoded it."""
    scale: float
    """Factor the frames were reduced by (1 = as decoded)."""
    shape: tuple[int, int, int, int]
    """(T, H, W, 3)."""
    path: Path | None = None
    """The .npy; None when the frames are held in memory."""
    memory: ByteArray | None = None
    _opened: dict[str, ByteArray] = field(default_factory=dict, repr=False, compare=False)

    @property
    def frames(self) -> ByteArray:
        """(T, H, W, 3) uint8 RGB; opened on first use, so that a clip is cheap to send about."""
        if self.memory is not None:
            return self.memory
        if "map" not in self._opened:
            self._opened["map"] = np.load(str(self.path), mmap_mode="r")
        return self._opened["map"]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": {}}

    def shot_energy(self, shot: tuple[int, int]) -> EnergyArray:
        """Return the frame differences inside a shot: (length - 1,)."""
        return self.energy[shot[0] : shot[1] - 1]


class ClipCache:
    """Decode each clip once.

    Args:
        folder: Where to keep decoded clips; None takes the environment variable RESTORE_CACHE, and
            without that the clips are kept in memory.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        chosen = folder or os.environ.get("RESTORE_CACHE")
        self.folder = Path(chosen).expanduser() if chosen else None
        self._held: dict[str, Clip] = {}

    def get(
        self, name: str, files: Iterable[Path], decode: Decode, *, decoder: str, scale: float
    ) -> Clip:
        """Return a clip, from the cache where it is there.

        Args:
            name: What the clip is called in records.
            files: All files it is made of; path, size and time of change are in the key.
            decode: Yields its frames, (H, W, 3) uint8 RGB, already scaled.
            decoder: Library and version; part of the key.
            scale: Factor ``decode`` reduces frames by; part of the key.
        """
        key = _key(files, decoder, scale)
        if key in self._held:
            return self._held[key]
        clip = self._load(key) if self.folder else None
        if clip is None:
            clip = self._build(key, name, decode, decoder, scale)
        self._held[key] = clip
        return clip

    def _load(self, key: str) -> Clip | None:
        assert self.folder is not None
        table, frames = self.folder / f"{key}.json", self.folder / f"{key}.npy"
        try:
            entry = json.loads(table.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        if not frames.exists():
            return None
        return Clip(
            name=entry["name"],
            shots=tuple((int(a), int(b)) for a, b in entry["shots"]),
            energy=np.asarray(entry["energy"], np.float32),
            decoder=entry["decoder"],
            scale=entry["scale"],
            shape=tuple(entry["shape"]),
            path=frames,
        )

    def _build(self, key: str, name: str, decode: Decode, decoder: str, scale: float) -> Clip:
        images: list[ByteArray] = []
        starts: list[int] = []
        for image, starts_shot in find_cuts(decode()):
            if starts_shot:
                starts.append(len(images))
            images.append(image)
        if not images:
            raise InputError(f"{name}: no frames could be decoded; check the file")
        frames = np.stack(images)
        shots = tuple(itertools.pairwise([*starts, len(images)]))
        clip = Clip(name, shots, _energies(images), decoder, scale, frames.shape, memory=frames)
        if self.folder is None:
            return clip
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{key}.npy"
        _write_atomic(path, lambda file: np.save(file, frames))
        entry = {
            "name": name,
            "shots": clip.shots,
            "energy": [round(float(e), 4) for e in clip.energy],
            "decoder": decoder,
            "scale": scale,
            "shape": frames.shape,
        }
        text = json.dumps(entry).encode()
        _write_atomic(self.folder / f"{key}.json", lambda file: file.write(text))
        return replace(clip, memory=None, path=path, energy=np.asarray(entry["energy"], np.float32))


def _energies(images: list[ByteArray]) -> EnergyArray:
    height, width = images[0].shape[:2]
    factor = _SMALL / max(height, width)
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    small = [cv2.resize(i, size, interpolation=cv2.INTER_AREA).astype(np.float32) for i in images]
    return np.asarray([np.abs(b - a).mean() for a, b in itertools.pairwise(small)], np.float32)


def _key(files: Iterable[Path], decoder: str, scale: float) -> str:
    stamps = []
    for file in files:
        stat = file.stat()
        stamps.append([str(file.resolve()), stat.st_size, stat.st_mtime_ns])
    text = json.dumps([_VERSION, decoder, round(scale, 6), stamps])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _write_atomic(path: Path, write: Callable[[Any], object]) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
