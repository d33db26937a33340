"""Where clips come from: videos, folders of frames, photographs, pictures that need no files."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import cv2
import numpy as np

from restore.data.cache import ByteArray, Clip, ClipCache
from restore.data.motion import photograph_clip
from restore.data.sampling import Sampler
from restore.data.scaling import automatic_scale, jpeg_quality, reduce
from restore.errors import InputError
from restore.io import VideoReader, to_rgb

IMAGES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff"})
VIDEOS = frozenset({".mp4", ".mkv", ".mov", ".avi", ".webm", ".m4v", ".ts", ".mpg", ".y4m"})

LOSSLESS = frozenset({"ffv1", "huffyuv", "ffvhuff", "utvideo", "rawvideo", "png", "qtrle"})
"""Codecs whose frames need no reduction to be clean."""

Scale = float | Literal["auto"]

_TRIES = 3


@dataclass(frozen=True)
class Window:
    """Hold clean frames drawn from a source."""

    frames: ByteArray
    """(N, h, w, 3) uint8 RGB."""
    meta: dict[str, Any]


class Source(Protocol):
    """Gives windows of clean frames."""

    name: str
    weight: float
    """How often it is chosen, relative to the others."""

    def draw(
        self,
        frames: int,
        patch: tuple[int, int],
        sampler: Sampler,
        rng: np.random.Generator,
        step: int,
    ) -> Window:
        """Return a random window cropped to (h, w)."""
        ...

    def centre(self, index: int, frames: int, patch: tuple[int, int], sampler: Sampler) -> Window:
        """Return the window in the middle of clip ``index`` (modulo the number of clips)."""
        ...

    def describe(self) -> dict[str, Any]:
        """Return what the record of a training run should hold."""
        ...


class ClipSource:
    """Windows of decoded clips; a clip's chance grows with the root of its length.

    Args:
        name: For records.
        clips: At least one.
        weight: Relative to other sources.
        motion_share: Share of crops for which the place with the most motion of three is taken.
    """

    def __init__(
        self, name: str, clips: Sequence[Clip], *, weight: float = 1.0, motion_share: float = 0.5
    ) -> None:
        if not clips:
            raise InputError(f"{name}: no clips; give a folder that holds videos or frames")
        self.name, self.weight = name, weight
        self.clips, self.motion_share = tuple(clips), motion_share

    def draw(
        self,
        frames: int,
        patch: tuple[int, int],
        sampler: Sampler,
        rng: np.random.Generator,
        step: int,
    ) -> Window:
        """Return a random window of a random shot."""
        clip, shot = self._choose(frames, patch, rng)
        length = shot[1] - shot[0]
        index = shot[0] + sampler.window(length, frames, rng, clip.shot_energy(shot))
        data = clip.frames
        places = _TRIES if frames > 1 and rng.random() < self.motion_share else 1
        tops = rng.integers(0, data.shape[1] - patch[0] + 1, places)
        lefts = rng.integers(0, data.shape[2] - patch[1] + 1, places)
        best = 0
        if places > 1:
            ends = [
                data[[index[0], index[-1]], top : top + patch[0] : 4, left : left + patch[1] : 4]
                for top, left in zip(tops, lefts, strict=True)
            ]
            best = int(np.argmax([np.abs(np.subtract(*e, dtype=np.int16)).mean() for e in ends]))
        return self._cut(clip, index, int(tops[best]), int(lefts[best]), patch)

    def centre(self, index: int, frames: int, patch: tuple[int, int], sampler: Sampler) -> Window:
        """Return the middle of the longest shot."""
        usable = [c for c in self.clips if _usable(c, frames, patch)]
        if not usable:
            raise self._too_small(frames, patch)
        clip = usable[index % len(usable)]
        shot = max(clip.shots, key=lambda s: s[1] - s[0])
        chosen = shot[0] + sampler.window(shot[1] - shot[0], frames)
        top, left = (clip.shape[1] - patch[0]) // 2, (clip.shape[2] - patch[1]) // 2
        return self._cut(clip, chosen, top, left, patch)

    def describe(self) -> dict[str, Any]:
        """Return the clips with their scale and decoder."""
        rows = [
            {"name": c.name, "shape": list(c.shape), "scale": c.scale, "decoder": c.decoder}
            for c in self.clips
        ]
        return {"name": self.name, "weight": self.weight, "clips": rows}

    def _choose(
        self, frames: int, patch: tuple[int, int], rng: np.random.Generator
    ) -> tuple[Clip, tuple[int, int]]:
        pairs = [(c, s) for c in self.clips for s in _usable(c, frames, patch)]
        if not pairs:
            raise self._too_small(frames, patch)
        length = np.array([s[1] - s[0] for _, s in pairs], np.float64)
        chance = np.sqrt(length)
        return pairs[int(rng.choice(len(pairs), p=chance / chance.sum()))]

    def _cut(self, clip: Clip, index: Any, top: int, left: int, patch: tuple[int, int]) -> Window:
        frames = clip.frames[index, top : top + patch[0], left : left + patch[1]]
        meta = {
            "source": self.name,
            "clip": clip.name,
            "frames": [int(i) for i in index],
            "place": (top, left),
        }
        return Window(np.asarray(frames), meta)

    def _too_small(self, frames: int, patch: tuple[int, int]) -> InputError:
        return InputError(
            f"{self.name}: no shot has {frames} frames of {patch[1]}x{patch[0]} after downscaling; "
            "use fewer frames, a smaller patch or scale=1"
        )


def _usable(clip: Clip, frames: int, patch: tuple[int, int]) -> list[tuple[int, int]]:
    if clip.shape[1] < patch[0] or clip.shape[2] < patch[1]:
        return []
    return [s for s in clip.shots if s[1] - s[0] >= frames]


class PhotoSource:
    """Photographs in synthetic camera motion.

    Args:
        name: For records.
        photographs: Clips of one frame each, at least one.
        weight: Relative to other sources.
    """

    def __init__(self, name: str, photographs: Sequence[Clip], *, weight: float = 1.0) -> None:
        if not photographs:
            raise InputError(f"{name}: no photographs; give a folder of pictures")
        self.name, self.weight = name, weight
        self.photographs = tuple(photographs)

    def draw(
        self,
        frames: int,
        patch: tuple[int, int],
        sampler: Sampler,
        rng: np.random.Generator,
        step: int,
    ) -> Window:
        """Return a new clip; the sampler has nothing to choose from."""
        first, second = rng.integers(len(self.photographs), size=2)
        pair = [self.photographs[int(i)] for i in (first, second)]
        clip, numbers = photograph_clip([p.frames[0] for p in pair], frames, patch, rng)
        return Window(clip, {"source": self.name, "clip": pair[0].name, **numbers})

    def centre(self, index: int, frames: int, patch: tuple[int, int], sampler: Sampler) -> Window:
        """Return the clip that belongs to a number: always the same motion."""
        return self.draw(frames, patch, sampler, np.random.default_rng([7, index]), 0)

    def describe(self) -> dict[str, Any]:
        """Return the photographs with their scale and decoder."""
        rows = [
            {"name": p.name, "shape": list(p.shape), "scale": p.scale, "decoder": p.decoder}
            for p in self.photographs
        ]
        return {"name": self.name, "weight": self.weight, "photographs": rows}


def load_folder(folder: Path, cache: ClipCache, scale: Scale = "auto") -> Clip:
    """Load a folder of frames as one clip, in the order of their numbers.

    Raises:
        InputError: If a frame cannot be read or has another size than the first.
    """
    files = image_files(folder)
    first = read_image(files[0])
    factor = (
        automatic_scale(first.shape[:2], quality=jpeg_quality(files[0]))
        if scale == "auto"
        else scale
    )

    def decode() -> Iterator[ByteArray]:
        for file in files:
            image = read_image(file)
            if image.shape != first.shape:
                raise InputError(
                    f"{file}: {image.shape[1]}x{image.shape[0]}, but the folder starts with "
                    f"{first.shape[1]}x{first.shape[0]}; frames of a clip have one size"
                )
            yield reduce(image, factor)

    return cache.get(folder.name, files, decode, decoder=_opencv(), scale=factor)


def load_photograph(file: Path, cache: ClipCache, scale: Scale = "auto") -> Clip:
    """Load one photograph as a clip of one frame."""
    image = read_image(file)
    factor = automatic_scale(image.shape[:2], quality=100) if scale == "auto" else scale
    return cache.get(
        file.name, [file], lambda: [reduce(image, factor)], decoder=_opencv(), scale=factor
    )


def load_video(file: Path, cache: ClipCache, scale: Scale = "auto") -> Clip:
    """Decode a video once; lossy codecs are at least halved by the automatic scale."""
    with VideoReader(file) as reader:
        info = reader.info
    factor = scale
    if factor == "auto":
        lossless = info.codec in LOSSLESS
        factor = automatic_scale((info.height, info.width), quality=100 if lossless else 0)

    def decode() -> Iterator[ByteArray]:
        with VideoReader(file) as reader:
            for frame in reader:
                image = np.clip(np.rint(to_rgb(frame) * 255), 0, 255).astype(np.uint8)
                yield reduce(image, factor)

    decoder = f"pyav {importlib.metadata.version('av')}"
    return cache.get(file.name, [file], decode, decoder=decoder, scale=factor)


def image_files(folder: Path) -> list[Path]:
    """Return the pictures of a folder ordered by the numbers in their names."""
    files = [f for f in folder.iterdir() if f.suffix.lower() in IMAGES]
    return sorted(files, key=lambda f: ([int(n) for n in re.findall(r"\d+", f.stem)], f.stem))


def read_image(file: Path) -> ByteArray:
    """Read a picture as (H, W, 3) uint8 RGB.

    Raises:
        InputError: If it cannot be decoded.
    """
    image = cv2.imread(str(file), cv2.IMREAD_COLOR)
    if image is None:
        raise InputError(f"{file}: not a picture OpenCV can read; remove it or convert it to PNG")
    return np.ascontiguousarray(image[..., ::-1])


def _opencv() -> str:
    return f"opencv {cv2.__version__}"
