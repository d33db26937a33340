"""Validation: whole clips restored as at run time, with noise drawn once per clip."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from restore.align import aligner_for
from restore.analyse import NoiseCurve
from restore.data.compress import Compress
from restore.data.degrade import Sample
from restore.data.noise import Camera
from restore.memory import enlarge
from restore.metrics.fidelity import psnr
from restore.sequence import restore_shot, restore_twice

Array = np.ndarray

SENSORS = {"low": 0.001, "mid": 0.006, "high": 0.02}
"""Levels of camera noise: variance per unit of linear light."""


class TorchEngine:
    """A torch module as `restore.sequence` wants it: hyperframe (C, H, W) -> picture."""

    def __init__(self, model: nn.Module) -> None:
        """Wrap a model, which stays where it is."""
        self.model = model
        self.scale = int(getattr(model, "scale", 1))
        self.device = next(model.parameters()).device

    def __call__(self, hyperframe: Array) -> Array:
        """Restore one hyperframe."""
        with torch.inference_mode():
            out = self.model(torch.from_numpy(hyperframe)[None].to(self.device))
        return out[0].float().cpu().numpy()


def white_samples(
    clips: Sequence[Array], sigmas: Sequence[float], seed: int = 0, *, stored: bool = True
) -> list[Sample]:
    """Return clips under white noise.

    Args:
        clips: Each of shape (N, H, W, 3), float32.
        sigmas: In 0-255 units.
        seed: The noise of a clip depends on this, the clip's number and σ.
        stored: Round and clip to 8 bits, as a file would; otherwise as in papers.
    """
    samples = []
    for number, clean in enumerate(clips):
        for sigma in sigmas:
            rng = np.random.default_rng([seed, number, round(sigma * 100)])
            noisy = clean + rng.standard_normal(clean.shape, np.float32) * np.float32(sigma / 255)
            if stored:
                noisy = np.round(noisy.clip(0, 1) * 255) / np.float32(255)
            curve = NoiseCurve.white(sigma / 255)
            samples.append(Sample(clean, noisy, curve, {"group": f"white {sigma:g}"}))
    return samples


def real_samples(clips: Sequence[Array], seed: int = 0) -> list[Sample]:
    """Return clips with the noise of a small sensor, through H.264 at 0.3 bit a pixel.

    Shot and read noise in linear light, blurred as by demosaicing, partly the same in all channels.
    The curve that goes with a clip is white, of the true root mean square error.

    Args:
        clips: Each of shape (N, H, W, 3), float32.
        seed: The noise of a clip depends on this, the clip's number and the level.
    """
    samples = []
    for number, clean in enumerate(clips):
        for order, (level, gain) in enumerate(SENSORS.items()):
            rng = np.random.default_rng([seed, number, order])
            camera = Camera(gain, 0.02 * gain, gamma=2.2, shared=0.3, correlation="blur", width=0.6)
            encode = Compress("libx264", bits_per_pixel=0.3, preset="medium")
            noisy = encode(camera(clean, rng), rng)
            error = float(np.sqrt(np.mean(np.square(noisy - clean))))
            samples.append(
                Sample(clean, noisy, NoiseCurve.white(error), {"group": f"real {level}"})
            )
    return samples


def validate(
    model: nn.Module,
    samples: Sequence[Sample],
    *,
    slots: int = 5,
    twice: bool = False,
    show: Callable[[str, Array], None] | None = None,
) -> dict[str, float]:
    """Restore every sample and average the PSNR over frames and clips, group by group.

    Args:
        model: Any network that takes hyperframes.
        samples: Clips, their `meta["group"]` naming the figure they belong to.
        slots: Slots of the hyperframe, T.
        twice: Restore in two passes.
        show: Called once a group with its name and a strip of the middle frame of its first clip,
            noisy, restored and clean side by side, shape (H, 3*W, 3), float32 in [0, 1].

    Returns:
        "psnr GROUP" and "gain GROUP" (over the noisy clip, enlarged bicubically), in dB, and their
        means under "val_psnr" and "val_gain".
    """
    model.eval()
    engine = TorchEngine(model)
    aligner = aligner_for(engine.scale)
    restore = restore_twice if twice else restore_shot
    groups: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        shot = restore(sample.noisy, engine, sample.curve, slots=slots, aligner=aligner)
        restored = [np.clip(out, 0, 1) for out in shot]
        before = [enlarge(noisy, engine.scale) for noisy in sample.noisy]
        pairs = [
            (psnr(clean, out), psnr(clean, noisy))
            for out, clean, noisy in zip(restored, sample.clean, before, strict=True)
        ]
        after, untouched = np.mean(pairs, axis=0)
        group = str(sample.meta["group"])
        if show is not None and group not in groups:
            middle = len(restored) // 2
            row = (before[middle].clip(0, 1), restored[middle], sample.clean[middle])
            show(group, np.concatenate(row, axis=1))
        groups.setdefault(group, []).append((after, after - untouched))
    figures: dict[str, float] = {}
    for group, values in groups.items():
        figures[f"psnr {group}"], figures[f"gain {group}"] = map(float, np.mean(values, axis=0))
    for name in ("psnr", "gain"):
        parts = [value for key, value in figures.items() if key.startswith(f"{name} ")]
        figures[f"val_{name}"] = float(np.mean(parts))
    model.train()
    return figures
