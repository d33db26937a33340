"""Measure weights on noisy clips or pictures and write the table of their model card.

    python experiments/evaluate.py denoise CLIPS --sigmas 10,30,50 --table card.md
    python experiments/evaluate.py run/average.safetensors CLIPS --frames 10 --estimate
    python experiments/evaluate.py edge CLIPS --noise real
    python experiments/evaluate.py edge PICTURES --pictures --noise awgn --sigmas 15,25,50

CLIPS is a clip, a folder of frames, or a folder of either; PICTURES a folder of pictures, each a
clip of one frame. Noise is drawn once per clip and level: `white` is rounded and clipped to 8 bits,
as a file would hold it; `awgn` stays as it is, as in papers; `real` is the noise of a camera,
through H.264, at three levels. Whole pictures and all frames count. Single-frame networks and .onnx
files are measured likewise.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from restore.align import Aligner
from restore.analyse import estimate_noise, told
from restore.data.degrade import Sample
from restore.engine import load_engine
from restore.errors import InputError, RestoreError, UsageError
from restore.io import VideoReader
from restore.metrics import backbone_at_hand
from restore.metrics.clip import FullReference, mean_of
from restore.metrics.evaluate import picture, sampling_for
from restore.models.student import OnHyperframes, Student
from restore.report.figures import FIGURES, show
from restore.sequence import Engine, restore_shot
from restore.training.validation import TorchEngine, real_samples, white_samples
from restore.weights import load_model

VIDEOS = {".mkv", ".mp4", ".mov", ".avi", ".webm", ".y4m"}
PICTURES = {".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp"}
NOISES = ("white", "awgn", "real")
COLUMNS = ("psnr", "psnr_sequence", "ssim", "lpips", "detail_lost", "warp", "flicker", "ghosting")

Array = np.ndarray
Row = dict[str, Any]


def find_clips(path: Path, pictures: bool = False) -> list[Path]:
    """Return the clips at a path: itself, or the videos and folders of frames in it.

    Args:
        path: Clip, folder of frames, or folder of either.
        pictures: Take a folder for one of pictures that have nothing to do with each other.

    Raises:
        InputError: If there is none.
    """
    if pictures and path.is_dir():
        found = sorted(p for p in path.iterdir() if p.suffix.lower() in PICTURES)
        if not found:
            raise InputError(f"{path}: holds no pictures; name another folder")
        return found
    if path.is_file() or (path.is_dir() and _holds_pictures(path)):
        return [path]
    inside = sorted(path.iterdir()) if path.is_dir() else []
    clips = [p for p in inside if p.suffix.lower() in VIDEOS or (p.is_dir() and _holds_pictures(p))]
    if not clips:
        raise InputError(f"{path}: holds no video and no folder of frames; name another folder")
    return clips


def _holds_pictures(folder: Path) -> bool:
    return any(p.suffix.lower() in PICTURES for p in folder.iterdir())


def read_clip(path: Path, frames: int, height: int | None) -> Array:
    """Return the first frames, (T, H, W, 3) float32 in [0, 1], or their middle lines."""
    with VideoReader(path) as reader:
        clip = np.stack([picture(frame) for frame in islice(reader, frames)])
    if height is not None and clip.shape[1] > height:
        top = (clip.shape[1] - height) // 2
        clip = clip[:, top : top + height]
    return clip


def engine_of(weights: str, device: str = "cpu") -> tuple[Engine, bool]:
    """Load weights by name or file; tell whether they look at one frame only.

    Raises:
        WeightsError: If they cannot be loaded.
    """
    if weights.endswith(".onnx"):
        engine = load_engine(weights, threads=torch.get_num_threads())
        return engine, engine.single
    model, _ = load_model(weights)
    single = isinstance(model, Student)
    network = OnHyperframes(model) if isinstance(model, Student) else model
    return TorchEngine(network.to(device).eval()), single


def noisy_clips(clean: Array, args: argparse.Namespace) -> list[Sample]:
    """Return a clip under the noise that was asked for, once a level."""
    if args.noise == "real":
        return real_samples([clean], args.seed)
    return white_samples([clean], args.sigmas, args.seed, stored=args.noise == "white")


def restored(sample: Sample, engine: Engine, slots: int, estimate: bool) -> tuple[Array, float]:
    """Restore a clip; return it clipped to [0, 1] and the CPU seconds it took."""
    begin = time.process_time()
    curve = told(estimate_noise(list(sample.noisy))) if estimate else sample.curve
    aligner = Aligner()
    shot = restore_shot(sample.noisy, engine, curve, slots=slots, aligner=aligner)
    return np.stack([np.clip(frame, 0, 1) for frame in shot]), time.process_time() - begin


def measure(clean: Array, clips: Sequence[Array], *, lpips: bool) -> list[dict[str, float]]:
    """Return the figures of clips against the clean one."""
    sampling = sampling_for(len(clean), lpips=lpips)
    meter = FullReference(clean.shape[1], clean.shape[2], len(clips), sampling)
    for number, frame in enumerate(clean):
        meter.add(frame, [clip[number] for clip in clips])
    return [clip.mean() for clip in meter.clips]


def evaluate_weights(args: argparse.Namespace) -> list[Row]:
    """Return one row of figures per clip and level, with the noisy PSNR and the cost beside."""
    engine, single = engine_of(args.weights, args.device)
    slots = 1 if single else args.slots
    lpips = backbone_at_hand() and not args.no_lpips
    rows = []
    for path in find_clips(args.clips, args.pictures):
        clean = read_clip(path, args.frames, args.max_height)
        for sample in noisy_clips(clean, args):
            out, seconds = restored(sample, engine, slots, estimate=args.estimate)
            noisy, figures = measure(clean, [sample.noisy, out], lpips=lpips)
            megapixels = len(clean) * clean.shape[1] * clean.shape[2] / 1e6
            sigma = round(sample.curve.mean_sigma * 255, 3)
            rows.append(
                {"clip": path.stem, "level": str(sample.meta["group"]).split()[-1]}
                | {"sigma": sigma, "noisy": noisy["psnr"]}
                | {name: figures[name] for name in COLUMNS}
                | {"cost": seconds / megapixels}
            )
            print(_line(rows[-1]), flush=True)
    return rows


def averages(rows: Sequence[Row]) -> list[Row]:
    """Return the means over the clips, one row a level."""
    means = []
    for level in dict.fromkeys(row["level"] for row in rows):
        some = [row for row in rows if row["level"] == level]
        names = [name for name in some[0] if name not in ("clip", "level")]
        numbers = {name: mean_of(row[name] for row in some) for name in names}
        means.append({"clip": f"mean of {len(some)}", "level": level} | numbers)
    return means


def _cells(row: Row) -> list[str]:
    figures = [show(name, row[name]) for name in COLUMNS]
    return [row["clip"], row["level"], f"{row['noisy']:.2f}", *figures, f"{row['cost']:.2f}"]


def _line(row: Row) -> str:
    return "| " + " | ".join(_cells(row)) + " |"


def table(rows: Sequence[Row], heading: str) -> str:
    """Return the Markdown table of a model card."""
    labels = [f"{FIGURES[n].label} {FIGURES[n].unit}".strip() for n in COLUMNS]
    heads = ["clip", "noise", "noisy PSNR dB", *labels, "CPU s/MP"]
    rule = "| --- |" + " ---: |" * (len(heads) - 1)
    lines = [heading, "", "| " + " | ".join(heads) + " |", rule]
    return "\n".join([*lines, *map(_line, rows), *map(_line, averages(rows)), ""])


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Measure weights on noisy clips or pictures.")
    parser.add_argument("weights", help="name, safetensors or onnx file")
    parser.add_argument("clips", type=Path, help="clip, folder of frames, or folder of either")
    parser.add_argument("--noise", choices=NOISES, default="white")
    parser.add_argument("--sigmas", default="10,20,30,50", help="levels in 0-255 units")
    parser.add_argument("--pictures", action="store_true", help="a folder of unrelated pictures")
    parser.add_argument("--frames", type=int, default=25, help="frames of each clip")
    parser.add_argument("--max-height", type=int, help="use the middle lines only")
    parser.add_argument("--slots", type=int, default=5, help="slots of the hyperframe")
    parser.add_argument("--estimate", action="store_true", help="estimate the noise, as users do")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--no-lpips", action="store_true")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write Markdown there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    args = parser.parse_args(argv)
    try:
        args.sigmas = [float(value) for value in args.sigmas.split(",")]
    except ValueError:
        raise UsageError(f"--sigmas: {args.sigmas} is not a list such as 10,30,50") from None
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run; return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        args = parse(words)
        rows = evaluate_weights(args)
    except RestoreError as error:
        print(f"evaluate.py: {error}", file=sys.stderr)
        return error.exit_code
    command = shlex.join(["python", "experiments/evaluate.py", *words])
    kind = "noise estimated from the clip" if args.estimate else "σ given"
    what = {
        "white": "White noise, 8 bits",
        "awgn": "White noise, not rounded",
        "real": "Camera noise and H.264",
    }[args.noise]
    heading = f"{what}, {kind}, T = {args.slots}, torch {torch.__version__}: `{command}`"
    text = table(rows, heading)
    for row in averages(rows):
        print(_line(row))
    if args.table:
        args.table.write_text(text, encoding="utf-8")
    if args.json:
        plain = [
            {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
            for row in rows
        ]
        args.json.write_text(json.dumps(plain, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
