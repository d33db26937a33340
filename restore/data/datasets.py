"""Data sets: sources, a sampler and a recipe, with all randomness keyed by step and index."""

from __future__ import annotations

import importlib.metadata
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from restore.data.cache import Clip, ClipCache
from restore.data.degrade import Estimator, Recipe, Sample, degrade
from restore.data.sampling import Sampler
from restore.data.sources import (
    IMAGES,
    VIDEOS,
    ClipSource,
    PhotoSource,
    Scale,
    Source,
    Window,
    image_files,
    load_folder,
    load_photograph,
    load_video,
    read_image,
)
from restore.errors import InputError

_LOG = logging.getLogger(__name__)
_VALIDATION = 2**31


class ClipDataset:
    """Give training samples by number.

    ``sample(step, index)`` depends on (seed, step, index) and nothing else, so neither the number
    of workers or processes nor a resumed run changes what is trained on.

    Args:
        sources: One or more; each is chosen by its weight.
        sampler: Chooses frames within a shot.
        recipe: Draws degradations.
        frames: Frames a sample has unless the caller says otherwise.
        patch: (h, w) of a sample.
        seed: The one seed.
        augment: Flips, quarter turns and time reversal.
        estimator: Passed to ``degrade``.

    Raises:
        InputError: If there are no sources.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        sampler: Sampler,
        recipe: Recipe,
        *,
        frames: int = 5,
        patch: tuple[int, int] = (128, 128),
        seed: int = 0,
        augment: bool = True,
        estimator: Estimator | None = None,
    ) -> None:
        if not sources:
            raise InputError("no training data: give at least one source")
        self.sources, self.sampler, self.recipe = tuple(sources), sampler, recipe
        self.frames, self.patch, self.seed = frames, patch, seed
        self.augment, self.estimator = augment, estimator
        weights = np.array([s.weight for s in sources], np.float64)
        self._chance = weights / weights.sum()

    def sample(
        self,
        step: int,
        index: int,
        frames: int | None = None,
        patch: tuple[int, int] | None = None,
    ) -> Sample:
        """Return sample ``index`` of a step, the same one every time.

        Args:
            step: Optimizer step, from 0.
            index: Position in the global batch, from 0.
            frames: Frames for this step (all samples of a step should agree).
            patch: (h, w) for this step.
        """
        rng = np.random.default_rng([self.seed, step, index])
        source = self.sources[int(rng.choice(len(self.sources), p=self._chance))]
        count, size = frames or self.frames, patch or self.patch
        turn = self.augment and rng.random() < 0.5
        cut = (size[1], size[0]) if turn else size
        window = source.draw(count, cut, self.sampler, rng, step)
        clean = window.frames
        if turn:
            clean = clean.transpose(0, 2, 1, 3)
        if self.augment:
            clean = clean[:: _sign(rng), :: _sign(rng), :: _sign(rng)]
        return self._finish(clean, window, rng)

    def validation(
        self, index: int, frames: int | None = None, patch: tuple[int, int] | None = None
    ) -> Sample:
        """Return validation sample ``index``: the centre of a clip, sources in turn, no flips."""
        rng = np.random.default_rng([self.seed, _VALIDATION, index])
        source = self.sources[index % len(self.sources)]
        turn = index // len(self.sources)
        window = source.centre(turn, frames or self.frames, patch or self.patch, self.sampler)
        return self._finish(window.frames, window, rng)

    def describe(self) -> dict[str, Any]:
        """Return what to store with the weights: sources, decoders, scales, sampler, recipe."""
        return {
            "sources": [source.describe() for source in self.sources],
            "sampler": {"name": type(self.sampler).__name__, **asdict(self.sampler)},  # type: ignore[call-overload]
            "recipe": {"name": type(self.recipe).__name__, **asdict(self.recipe)},  # type: ignore[call-overload]
            "frames": self.frames,
            "patch": list(self.patch),
            "seed": self.seed,
            "augment": self.augment,
        }

    def _finish(self, frames: Any, window: Window, rng: np.random.Generator) -> Sample:
        clean = np.ascontiguousarray(frames).astype(np.float32) * np.float32(1 / 255)
        sample = degrade(clean, self.recipe, rng, estimator=self.estimator)
        sample.meta.update(window.meta)
        return sample


def _sign(rng: np.random.Generator) -> int:
    return -1 if rng.random() < 0.5 else 1


def find_sources(
    paths: Iterable[str | Path],
    *,
    cache: ClipCache | None = None,
    scale: Scale = "auto",
    photo_share: float = 0.35,
    skip_unreadable: bool = True,
) -> list[Source]:
    """Look through folders and files for everything to train on.

    A folder whose pictures have one size and evenly spaced numbers for names is a clip; other
    pictures are photographs. Videos are clips.

    Args:
        paths: Folders (searched through) and files.
        cache: Where decoded clips are kept; by default as ``ClipCache()`` decides.
        scale: Factor for all of them, or "auto" (see ``restore.data.scaling``).
        photo_share: Weight of the photographs when there are clips as well.
        skip_unreadable: Log and skip a broken file; otherwise raise.

    Raises:
        InputError: If a path is missing or nothing is found.
    """
    cache = cache or ClipCache()
    clips: list[Clip] = []
    photographs: list[Clip] = []
    for path in map(Path, paths):
        if not path.exists():
            raise InputError(f"{path}: no such file or folder; check the name")
        for kind, item in _walk(path):
            load = {"video": load_video, "clip": load_folder, "photograph": load_photograph}[kind]
            try:
                clip = load(item, cache, scale)
            except (InputError, ImportError) as error:
                if not skip_unreadable:
                    raise
                _LOG.warning("skipped %s: %s", item, error)
                continue
            (photographs if kind == "photograph" else clips).append(clip)
    sources: list[Source] = []
    if clips:
        sources.append(ClipSource("clips", clips, weight=1 - photo_share if photographs else 1.0))
    if photographs:
        sources.append(
            PhotoSource("photographs", photographs, weight=photo_share if clips else 1.0)
        )
    if not sources:
        raise InputError(
            f"{', '.join(map(str, paths))}: no videos or pictures found; check the path"
        )
    return sources


def builtin_source(weight: float = 1.0) -> PhotoSource:
    """Return scikit-image's bundled photographs in motion: training data that needs no files."""
    import skimage.data

    names = ("astronaut", "chelsea", "coffee", "rocket")
    photographs = []
    for name in names:
        image = np.ascontiguousarray(getattr(skimage.data, name)()[..., :3])
        photographs.append(_still(name, image))
    return PhotoSource("builtin", photographs, weight=weight)


def _still(name: str, image: Any) -> Clip:
    decoder = f"scikit-image {importlib.metadata.version('scikit-image')}"
    frames = image[None]
    none = np.zeros(0, np.float32)
    return Clip(name, ((0, 1),), none, decoder, 1.0, frames.shape, memory=frames)


def _walk(path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        if path.suffix.lower() in VIDEOS:
            yield "video", path
        elif path.suffix.lower() in IMAGES:
            yield "photograph", path
        return
    if _is_clip(path):
        yield "clip", path
        return
    for item in sorted(path.iterdir()):
        yield from _walk(item)


def _is_clip(folder: Path) -> bool:
    files = image_files(folder)
    numbers = ["".join(c for c in f.stem if c.isdigit()) for f in files]
    if len(files) < 2 or not all(numbers):
        return False
    steps = np.diff([int(n) for n in numbers])
    if len(set(steps.tolist())) != 1 or steps[0] < 1:
        return False
    ends = [read_image(f).shape for f in (files[0], files[-1])]
    return ends[0] == ends[1]
