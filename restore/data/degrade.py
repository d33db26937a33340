"""Turn a clean clip into a training sample: degradations composed at random, and the noise told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from restore.analyse import NoiseCurve, estimate_noise, told
from restore.data.compress import Compress
from restore.data.curves import oracle_curve, plausible, with_error
from restore.data.noise import (
    Camera,
    ChromaNoise,
    ChromaSubsampling,
    Correlation,
    FloatArray,
    Grain,
    White,
    quantize,
)

Estimator = Callable[[Sequence[FloatArray]], NoiseCurve]


@dataclass(frozen=True)
class Sample:
    """Hold one training sample."""

    clean: FloatArray
    """(N, h, w, 3) RGB in [0, 1]."""
    noisy: FloatArray
    """The same clip, degraded; in [0, 1] where it was stored in 8 bits."""
    curve: NoiseCurve
    """What the run time would be told about the noise."""
    meta: dict[str, Any] = field(default_factory=dict)
    """Where the clip came from, and every degradation with its numbers."""


class Degradation(Protocol):
    """One step from clean to noisy: a frozen dataclass whose fields say all about it."""

    name: ClassVar[str]

    def __call__(self, clip: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return a new clip of the same shape (N, h, w, 3)."""
        ...


@dataclass(frozen=True)
class Drawn:
    """Hold what a recipe drew for one sample."""

    steps: tuple[Degradation, ...]
    stored: bool
    """Round the result to 8 bits and clip it."""
    sigma: float | None
    """The true σ where the noise is white; None where a curve has to be found."""


class Recipe(Protocol):
    """Draws the degradations of one sample."""

    estimated_share: float
    """Share of samples without a known σ whose curve is measured as at run time."""

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Return the steps for one sample."""
        ...


@dataclass(frozen=True)
class AwgnRecipe:
    """White Gaussian noise only, σ in [0, 1] units: half log-uniform, half uniform.

    Raises:
        ValueError: If the range of σ is empty or a share lies outside [0, 1].
    """

    sigma_max: float = 60 / 255
    sigma_min: float = 0.0
    clipped_share: float = 0.5
    """Share of samples that are rounded to 8 bits and clipped."""
    estimated_share: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.sigma_min <= self.sigma_max:
            raise ValueError(f"0 <= sigma_min <= sigma_max, not {self.sigma_min}, {self.sigma_max}")
        if not (0 <= self.clipped_share <= 1 and 0 <= self.estimated_share <= 1):
            raise ValueError("shares must lie in [0, 1]")

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Return one step of white noise."""
        sigma = draw_sigma(rng, self.sigma_min, self.sigma_max)
        clipped = bool(rng.random() < self.clipped_share)
        return Drawn((White(sigma, clipped),), clipped, sigma)


@dataclass(frozen=True)
class MixedRecipe:
    """White noise, camera chains, compression, grain, chroma noise and untouched clips.

    The weights need not add up to 1. A chain is built in random order, may be made of two noises,
    and most chains end in an encoder, for that is what files went through.
    """

    white: float = 0.47
    camera: float = 0.26
    compression: float = 0.10
    grain: float = 0.08
    chroma: float = 0.06
    identity: float = 0.03
    sigma_max: float = 60 / 255
    clipped_share: float = 0.9
    """Share of the white-noise samples that are rounded to 8 bits and clipped."""
    compressed_share: float = 0.75
    """Share of the camera, grain and chroma chains that end in an encoder."""
    hevc_share: float = 0.08
    """Share of the encoded clips that go through x265, which is slow."""
    estimated_share: float = 0.5

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Return the steps of one sample, in order."""
        families = ("white", "camera", "compression", "grain", "chroma", "identity")
        weights = np.array([getattr(self, family) for family in families], np.float64)
        family = families[int(rng.choice(len(families), p=weights / weights.sum()))]
        if family == "white":
            return AwgnRecipe(self.sigma_max, 0.0, self.clipped_share).draw(rng)
        if family == "identity":
            return Drawn((), True, None)
        if family == "compression":
            return Drawn((draw_compression(rng, self.hevc_share),), True, None)
        steps = [_NOISES[family](rng)]
        if rng.random() < 0.25:
            steps.append(list(_NOISES.values())[int(rng.integers(len(_NOISES)))](rng))
        if rng.random() < 0.3:
            steps.append(ChromaSubsampling(bool(rng.random() < 0.7)))
        steps = [steps[i] for i in rng.permutation(len(steps))]
        if rng.random() < self.compressed_share:
            steps.append(draw_compression(rng, self.hevc_share))
        return Drawn(tuple(steps), True, None)


def degrade(
    clean: FloatArray,
    recipe: Recipe,
    rng: np.random.Generator,
    *,
    estimator: Estimator | None = None,
) -> Sample:
    """Degrade a clip by a recipe.

    Args:
        clean: (N, h, w, 3) float32 RGB in [0, 1]; not changed.
        recipe: Draws the steps.
        rng: The only source of randomness: the same state gives the same sample.
        estimator: Measures the curve; None means ``restore.analyse.estimate_noise``.

    Returns:
        The sample; ``meta`` holds "degradations" (name and numbers of each step, in order) and
        "curve" ("known", "measured" or "oracle": where the curve came from).

    Raises:
        ValueError: If the clip is not (N, h, w, 3) float32.
    """
    if clean.ndim != 4 or clean.shape[3] != 3 or clean.dtype != np.float32:
        raise ValueError(f"clip must be (N, h, w, 3) float32, not {clean.shape} {clean.dtype}")
    drawn = recipe.draw(rng)
    noisy = clean
    for step in drawn.steps:
        noisy = step(noisy, rng)
    if drawn.stored:
        noisy = quantize(noisy)
    elif noisy is clean:
        noisy = clean.copy()
    if drawn.sigma is not None:
        curve, origin = with_error(NoiseCurve.white(drawn.sigma), rng), "known"
    else:
        truth = oracle_curve(clean, noisy)
        curve, origin = with_error(truth, rng, usual=0.15, rare=0.45), "oracle"
        if rng.random() < recipe.estimated_share:
            measured = (estimator or estimate_noise)(list(noisy))
            curve, origin = told(plausible(measured, truth, rng)), "measured"
    steps = [{"name": step.name, **asdict(step)} for step in drawn.steps]  # type: ignore[call-overload]
    return Sample(clean, noisy, curve, {"degradations": steps, "curve": origin})


def draw_sigma(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw σ from [low, high]: half of the time uniform, half log-uniform from 1/255 up."""
    if rng.random() < 0.5:
        return float(rng.uniform(low, high))
    floor = min(max(low, 1 / 255), high)
    return log_uniform(rng, floor, high) if floor > 0 else 0.0


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform between those of low and high."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def draw_camera(rng: np.random.Generator) -> Camera:
    """Draw a sensor: gain over two decades, read noise, white balance, transfer, correlation."""
    shot = log_uniform(rng, 3e-4, 4e-2)
    kinds: tuple[Correlation, ...] = ("blur", "demosaic", "resample", "none")
    kind = kinds[int(rng.choice(4, p=[0.5, 0.15, 0.2, 0.15]))]
    width = rng.uniform(0.35, 1.1) if kind == "blur" else rng.uniform(1.05, 2.2)
    red, blue = rng.uniform(0.9, 1.6), rng.uniform(0.9, 1.8)
    return Camera(
        shot=shot,
        read=shot * log_uniform(rng, 3e-3, 0.15),
        gains=(float(red), 1.0, float(blue)) if rng.random() < 0.5 else (1.0, 1.0, 1.0),
        gamma=0.0 if rng.random() < 0.4 else float(rng.uniform(1.8, 2.4)),
        shared=float(rng.uniform(0, 0.6)),
        correlation=kind,
        width=float(width),
    )


def draw_grain(rng: np.random.Generator) -> Grain:
    """Draw film grain from hardly visible to coarse."""
    return Grain(
        sigma=log_uniform(rng, 2 / 255, 25 / 255),
        size=float(rng.uniform(0.4, 1.4)),
        colour=float(rng.uniform(0, 0.3)),
        bend=float(rng.uniform(0.2, 1.0)),
    )


def draw_chroma(rng: np.random.Generator) -> ChromaNoise:
    """Draw colour blotches from one pixel to a few pixels wide."""
    return ChromaNoise(log_uniform(rng, 2 / 255, 20 / 255), float(rng.uniform(0.4, 3.0)))


def draw_compression(rng: np.random.Generator, hevc_share: float) -> Compress:
    """Draw an encoder: half by rate, half by quality.

    Rates look high because clips were reduced (more detail a pixel) and are short (one I frame in
    few): the damage is that of 0.1 to 0.6 bit per pixel on whole 480-line clips, an error of about
    2 to 9 levels.
    """
    hevc = bool(rng.random() < hevc_share)
    by_rate = bool(rng.random() < 0.5)
    preset = "medium" if rng.random() < 0.35 else "veryfast"
    return Compress(
        codec="libx265" if hevc else "libx264",
        crf=0.0 if by_rate else float(rng.uniform(12, 29)),
        bits_per_pixel=log_uniform(rng, 0.4, 3.0) if by_rate else 0.0,
        preset="ultrafast" if hevc else preset,
        offset=(int(rng.integers(0, 16)), int(rng.integers(0, 16))),
        reverse=bool(rng.random() < 0.4),
    )


_NOISES: dict[str, Callable[[np.random.Generator], Degradation]] = {
    "camera": draw_camera,
    "grain": draw_grain,
    "chroma": draw_chroma,
}
