"""Take the method apart: what alignment, confidence, time and the stem are each worth.

    python experiments/ablate.py windows denoise-awgn CLIPS --sigmas 10,30,50
    python experiments/ablate.py networks --steps 300 --out runs/ablation [options of train_denoise]

`windows` restores clips with one trained network whose hyperframes are made in other ways; the
network is not trained again, so that a row says what the trained one needs. `networks` trains
variants of the network from the same seed on the same pictures for the same number of steps.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import torch
from evaluate import engine_of, find_clips, read_clip
from torch import Tensor, nn
from train_denoise import main as train

from restore.align import Aligned, Aligner, DISFlow, GuidedAligner, Motion, View
from restore.align.fine import FullSizeAligner
from restore.errors import RestoreError
from restore.hyperframe import SLOT, TIME_UNIT
from restore.metrics.fidelity import psnr, ssim
from restore.models import MODELS, Denoiser
from restore.models.blocks import AlongTime
from restore.sequence import Engine, restore_shot, restore_twice
from restore.training.validation import white_samples

Array = np.ndarray


class Still(Aligner):
    """Do not align."""

    def link(self, previous: View, current: View, sigma: float) -> None:
        """Say that nothing moves."""
        nothing = np.zeros((*current.search.shape, 2), np.float32)
        current.to_previous = previous.to_next = Motion(nothing, uniform=True)


class Shifted(Aligner):
    """Align by one vector for the whole picture."""

    def link(self, previous: View, current: View, sigma: float) -> None:
        """Find the vector by phase correlation, however badly it fits."""
        pictures = [view.search.astype(np.float32) for view in (current, previous)]
        window = cv2.createHanningWindow(pictures[0].shape[::-1], cv2.CV_32F)
        there = np.empty((*pictures[0].shape, 2), np.float32)
        there[:] = cv2.phaseCorrelate(*pictures, window)[0]
        current.to_previous = Motion(there, uniform=True)
        previous.to_next = Motion(-there, uniform=True)


class Trusting(Aligner):
    """Trust every neighbour everywhere."""

    def align(
        self, views: Sequence[View], reference: int, neighbour: int, variance: Array
    ) -> Aligned:
        """Align, and say that all is well."""
        aligned = super().align(views, reference, neighbour, variance)
        return replace(aligned, confidence=np.ones_like(aligned.confidence))


@dataclass(frozen=True)
class Way:
    """A way to make hyperframes."""

    slots: int = 5
    aligner: type[Aligner] = Aligner
    refinements: int = 1
    coarse: bool = False
    feedback: bool = False
    passes: int = 1
    second: type[Aligner] = GuidedAligner
    stride: int = 1


WAYS = {
    "default: T = 5, one refinement": Way(),
    "no alignment": Way(aligner=Still),
    "global shift": Way(aligner=Shifted),
    "flow not refined": Way(refinements=0),
    "refined twice": Way(refinements=2),
    "flow at half the search size": Way(coarse=True),
    "no confidence": Way(aligner=Trusting),
    "no alignment, no confidence": Way(aligner=type("Blind", (Trusting, Still), {})),
    "previous output fed back as a slot": Way(feedback=True),
    "T = 1": Way(slots=1),
    "T = 3": Way(slots=3),
    "T = 7": Way(slots=7),
    "neighbours at stride 2": Way(stride=2),
    "two passes, motion at half size": Way(slots=7, passes=2, second=Aligner),
    "two passes, no look at the guides' fit": Way(slots=7, passes=2, second=FullSizeAligner),
    "two passes (preset best)": Way(slots=7, passes=2),
}
"""Name -> way."""


def restored(noisy: Array, engine: Engine, curve: object, way: Way) -> Array:
    """Restore a clip (N, H, W, 3) in a way; with a stride, every so many frames are a clip."""
    out = np.empty_like(noisy)
    for phase in range(way.stride):
        flow = DISFlow(finest_scale=1) if way.coarse else None
        aligner = way.aligner(flow, refinements=way.refinements)
        frames = noisy[phase :: way.stride]
        if way.passes == 2:
            second = way.second()
            shot = restore_twice(
                frames, engine, curve, slots=way.slots, aligner=aligner, second=second
            )
        else:
            shot = restore_shot(
                frames, engine, curve, slots=way.slots, aligner=aligner, feedback=way.feedback
            )
        out[phase :: way.stride] = list(shot)
    return out.clip(0, 1)


def windows(args: argparse.Namespace) -> None:
    """Print a row a way: PSNR / SSIM, mean over frames and clips, a column a level."""
    engine, _ = engine_of(args.weights)
    clips = [read_clip(path, args.frames, args.max_height) for path in find_clips(args.clips)]
    samples = white_samples(clips, args.sigmas)
    print("| hyperframes | " + " | ".join(f"σ {s:g}" for s in args.sigmas) + " |")
    print("| --- |" + " ---: |" * len(args.sigmas), flush=True)
    for name, way in WAYS.items():
        cells = []
        for sigma in args.sigmas:
            pairs = [
                (psnr(clean, found), ssim(clean, found))
                for sample in samples
                if sample.meta["group"] == f"white {sigma:g}"
                for clean, found in zip(
                    sample.clean, restored(sample.noisy, engine, sample.curve, way), strict=True
                )
            ]
            first, second = np.mean(pairs, axis=0)
            cells.append(f"{first:.2f} / {second:.4f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


class NoTime(Denoiser):
    """See only which slot is the reference, not when the others were."""

    def forward(self, hyperframe: Tensor) -> Tensor:
        """Restore, every neighbour at the same time."""
        slots = hyperframe.unflatten(1, (-1, SLOT)).clone()
        slots[:, :, 3] = (slots[:, :, 3].abs() > 0.5 / TIME_UNIT).to(slots.dtype)
        return super().forward(slots.flatten(1, 2))


class Flat(Denoiser):
    """Look at each slot alone: a 2D stem."""

    def _make_stem(self, stem: int) -> None:
        super()._make_stem(stem)
        self.compare = AlongTime(stem, stem, reach=0)


class LongTime(Denoiser):
    """Keep the time axis for longer: two (2+1)D layers more before the slots are folded."""

    def _make_stem(self, stem: int) -> None:
        super()._make_stem(stem)
        layers = [
            layer
            for _ in range(2)
            for layer in (
                nn.ReLU(),
                nn.Conv3d(stem, stem, (1, 3, 3), padding=(0, 1, 1)),
                AlongTime(stem, stem),
            )
        ]
        self.compare = nn.Sequential(self.compare, *layers)  # type: ignore[assignment]


class Decided(Denoiser):
    """Fold by attention that is paid to be sure: the entropy of the weights counts in the loss."""

    ENTROPY = 1e-3

    def _stem(self, slots: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
        weights, folded = super()._stem(slots, prior)
        if weights.requires_grad:
            # d/dw of mean(-w log w), added to whatever else reaches the weights.
            weights.register_hook(
                lambda gradient: (
                    gradient
                    - self.ENTROPY
                    * (torch.log(weights.detach().clamp_min(1e-6)) + 1)
                    / weights.numel()
                )
            )
        return weights, folded


class ByConfidence(Denoiser):
    """Fold under confidence / σ² alone: no learned weights."""

    def _make_stem(self, stem: int) -> None:
        super()._make_stem(stem)
        self.vote.requires_grad_(False)


NETWORKS: dict[str, tuple[type[Denoiser], tuple[str, ...]]] = {
    "as published": (Denoiser, ()),
    "no time index": (NoTime, ()),
    "2D stem": (Flat, ()),
    "time axis kept, (2+1)D": (LongTime, ()),
    "fold by confidence": (ByConfidence, ()),
    "fold by attention with an entropy term": (Decided, ()),
    "LPIPS and edges in the second half": (Denoiser, ("--pixel_phase", "0.5")),
}
"""Name -> network, options of the training."""


def networks(args: argparse.Namespace, more: list[str]) -> int:
    """Train every variant; the validation is printed as each ends."""
    for number, (name, (network, options)) in enumerate(NETWORKS.items()):
        key = f"ablation-{number}"
        MODELS[key] = (network, dict(MODELS["denoiser"][1]))
        print(f"== {name}", flush=True)
        if code := learn(key, args.out / key, [*more, *options]):
            return code
    print("== trunk started from a single-frame network, half of the steps each", flush=True)
    started, half = args.out / "ablation-started", ["--steps", str(args.steps // 2)]
    single = [*more, *half, "--slots", "[1]", "--slot_weights", "[1.0]"]
    if code := learn("ablation-0", started / "alone", single):
        return code
    start = ["--init", str(started / "alone" / "ablation-0.safetensors")]
    return learn("ablation-0", started, [*more, *half, *start])


def learn(key: str, folder: Path, more: list[str]) -> int:
    """Train one network; return the exit code."""
    return train(["--model", key, "--name", key, "--out", str(folder), *more])


def main(argv: Sequence[str] | None = None) -> int:
    """Run; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    look = kinds.add_parser("windows", help="one network, hyperframes made in other ways")
    look.add_argument("weights", help="name or file")
    look.add_argument("clips", type=Path)
    look.add_argument("--sigmas", type=lambda s: [float(x) for x in s.split(",")], default=[30.0])
    look.add_argument("--frames", type=int, default=7)
    look.add_argument("--max-height", type=int, help="use the middle lines only")
    variants = kinds.add_parser("networks", help="variants trained alike; takes train_denoise's")
    variants.add_argument("--steps", type=int, default=300)
    variants.add_argument("--out", type=Path, default=Path("runs/ablation"))
    args, more = parser.parse_known_args(argv)
    try:
        if args.kind == "networks":
            return networks(args, [*more, "--steps", str(args.steps)])
        if more:
            parser.error(f"unknown: {' '.join(more)}")
        with torch.inference_mode():
            windows(args)
    except RestoreError as error:
        print(f"ablate.py: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
