"""Tar shards, for sets too large for one disk or for many small files: writing and reading.

A shard is a plain tar in the layout of webdataset: the files ``NAME.000000.jpg``,
``NAME.000001.jpg`` … stand together and are one clip.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from restore.data.cache import ByteArray
from restore.data.sampling import Sampler
from restore.data.sources import Window
from restore.errors import InputError

_HELD = 2


def write_shards(
    clips: Iterable[tuple[str, Iterable[ByteArray]]],
    folder: str | Path,
    *,
    clips_per_shard: int = 32,
    quality: int = 97,
) -> list[Path]:
    """Write clips into tar shards.

    Args:
        clips: Pairs of name and frames, (H, W, 3) uint8 RGB, one shot each.
        folder: Where ``shard-00000.tar`` and so on are put; made if it is missing.
        clips_per_shard: Clips in one tar. A reader holds two whole shards in memory, encoded.
        quality: JPEG quality from 1 to 100; 0 writes PNG.

    Returns:
        The shards, in order.

    Raises:
        ValueError: If there is no clip.
    """
    from webdataset import TarWriter

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    suffix = "jpg" if quality else "png"
    options = [cv2.IMWRITE_JPEG_QUALITY, quality] if quality else []
    shards: list[Path] = []
    writer: Any = None
    try:
        for number, (name, frames) in enumerate(clips):
            if number % clips_per_shard == 0:
                if writer:
                    writer.close()
                shards.append(folder / f"shard-{len(shards):05d}.tar")
                writer = TarWriter(str(shards[-1]))
            sample: dict[str, Any] = {"__key__": f"{number:06d}-{name.replace('.', '_')}"}
            for i, frame in enumerate(frames):
                done, data = cv2.imencode(f".{suffix}", frame[..., ::-1], options)
                if not done:
                    raise ValueError(f"{name}: frame {i} of shape {frame.shape} cannot be encoded")
                sample[f"{i:06d}.{suffix}"] = data.tobytes()
            writer.write(sample)
    finally:
        if writer:
            writer.close()
    if not shards:
        raise ValueError("no clips to write")
    return shards


@dataclass(frozen=True)
class _Encoded:
    name: str
    frames: tuple[bytes, ...]


class ShardSource:
    """Windows of clips in tar shards, read one shard after the other.

    The shard a step draws from depends on the step alone (an order shuffled anew in every pass, and
    ``steps_per_shard`` steps each), so a resumed run goes on where it was, and every process reads
    the same stream from front to back.

    Args:
        name: For records.
        shards: Tar files, or addresses webdataset can open.
        weight: Relative to other sources.
        steps_per_shard: Steps that draw from one shard before the next is opened.
    """

    def __init__(
        self,
        name: str,
        shards: Sequence[str | Path],
        *,
        weight: float = 1.0,
        steps_per_shard: int = 200,
    ) -> None:
        if not shards:
            raise InputError(f"{name}: no shards; give at least one .tar file")
        self.name, self.weight = name, weight
        self.shards, self.steps_per_shard = tuple(str(s) for s in shards), steps_per_shard
        self._held: dict[str, list[_Encoded]] = {}

    def draw(
        self,
        frames: int,
        patch: tuple[int, int],
        sampler: Sampler,
        rng: np.random.Generator,
        step: int,
    ) -> Window:
        """Return a random window of a random clip of the step's shard."""
        clips = [c for c in self._clips(self._shard(step)) if len(c.frames) >= frames]
        if not clips:
            raise InputError(f"{self._shard(step)}: no clip has {frames} frames; use fewer")
        clip = clips[int(rng.integers(len(clips)))]
        index = sampler.window(len(clip.frames), frames, rng)
        return self._cut(clip, index, patch, rng)

    def centre(self, index: int, frames: int, patch: tuple[int, int], sampler: Sampler) -> Window:
        """Return the middle of clip ``index`` of the first shard."""
        clips = [c for c in self._clips(self.shards[0]) if len(c.frames) >= frames]
        if not clips:
            raise InputError(f"{self.shards[0]}: no clip has {frames} frames; use fewer")
        clip = clips[index % len(clips)]
        return self._cut(clip, sampler.window(len(clip.frames), frames), patch, None)

    def describe(self) -> dict[str, Any]:
        """Return the shards and the decoder."""
        return {
            "name": self.name,
            "weight": self.weight,
            "shards": list(self.shards),
            "steps_per_shard": self.steps_per_shard,
            "decoder": f"opencv {cv2.__version__}",
        }

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": {}}

    def _shard(self, step: int) -> str:
        turn, place = divmod(step // self.steps_per_shard, len(self.shards))
        salt = zlib.crc32(self.name.encode())
        order = np.random.default_rng([salt, turn]).permutation(len(self.shards))
        return self.shards[int(order[place])]

    def _clips(self, shard: str) -> list[_Encoded]:
        if shard not in self._held:
            while len(self._held) >= _HELD:
                del self._held[next(iter(self._held))]
            self._held[shard] = list(_read(shard))
        return self._held[shard]

    def _cut(
        self,
        clip: _Encoded,
        index: Any,
        patch: tuple[int, int],
        rng: np.random.Generator | None,
    ) -> Window:
        images = [_decode(clip.frames[i], clip.name) for i in index]
        room = [images[0].shape[0] - patch[0], images[0].shape[1] - patch[1]]
        if min(room) < 0:
            size = f"{images[0].shape[1]}x{images[0].shape[0]}"
            raise InputError(f"{self.name}: {clip.name} is {size}, smaller than a patch")
        place = [r // 2 if rng is None else int(rng.integers(r + 1)) for r in room]
        top, left = place
        cut = [image[top : top + patch[0], left : left + patch[1]] for image in images]
        meta = {"source": self.name, "clip": clip.name, "frames": [int(i) for i in index]}
        return Window(np.stack(cut), {**meta, "place": (top, left)})


def _read(shard: str) -> Iterator[_Encoded]:
    from webdataset import WebDataset

    found = False
    for sample in WebDataset(shard, shardshuffle=False, empty_check=False):
        names = sorted(k for k in sample if k.endswith((".jpg", ".jpeg", ".png")))
        if names:
            found = True
            yield _Encoded(sample["__key__"], tuple(sample[k] for k in names))
    if not found:
        raise InputError(f"{shard}: holds no frames named NAME.000000.jpg; see write_shards")


def _decode(data: bytes, name: str) -> ByteArray:
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise InputError(f"{name}: a frame in the shard is damaged; write the shard again")
    return np.asarray(image[..., ::-1], np.uint8)
