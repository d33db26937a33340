"""Compare the runtimes on a model in one run: CPU time, time of a frame, the same answer.

    python experiments/runtimes.py denoise
    python experiments/runtimes.py denoise edge edge-int8.onnx --threads 2 --sizes 854x480

Every model runs in PyTorch, ONNX Runtime and OpenVINO, as far as they are installed and there is a
file for them, in turn, so that other programs on the machine disturb all of them alike; the best of
some rounds counts. CPU time is that of all threads.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from restore.engine import PACKAGES, Engine, load_engine
from restore.errors import RestoreError, UsageError, WeightsError
from restore.hyperframe import SLOT, TIME_UNIT

Array = np.ndarray


@dataclass
class Cost:
    """What a frame costs, best of the rounds so far."""

    cpu: float = np.inf
    wall: float = np.inf


def hyperframe(slots: int, width: int, height: int) -> Array:
    """Return a random hyperframe (T*8, H, W), always the same, the reference in the middle."""
    values = np.random.default_rng(0).random((slots, SLOT, height, width), np.float32)
    values[:, 3] = ((np.arange(slots) - slots // 2) / TIME_UNIT)[:, None, None]
    values[:, 5:] *= 0.2
    return values.reshape(slots * SLOT, height, width)


def engines(models: list[str], threads: int) -> dict[tuple[str, str], Engine]:
    """Load every model in every runtime that can run it, by (model, runtime).

    Raises:
        UsageError: If one cannot run at all.
    """
    found = {}
    for model in models:
        for runtime, package in PACKAGES.items():
            if importlib.util.find_spec(package) is None:
                continue
            try:
                engine = load_engine(model, runtime=runtime, device="cpu", threads=threads)
            except WeightsError:
                continue
            found[Path(model).stem, runtime] = engine
        if not any(name == Path(model).stem for name, _ in found):
            raise UsageError(f"{model}: no runtime can run it")
    return found


def measure(engine: Engine, frame: Array, cost: Cost) -> Array:
    """Run one frame and keep its cost if it is the least."""
    cpu, wall = time.process_time(), time.perf_counter()
    out = engine(frame)
    cost.cpu = min(cost.cpu, time.process_time() - cpu)
    cost.wall = min(cost.wall, time.perf_counter() - wall)
    return out


def table(models: list[str], sizes: list[tuple[int, int]], args: argparse.Namespace) -> str:
    """Measure all and return a Markdown table; the first row is what the others relate to."""
    lines = [
        "| model | runtime | size | CPU s/MP | CPU / first | ms a frame | code values off |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    loaded = engines(models, args.threads)
    for width, height in sizes:
        frame = hyperframe(args.slots, width, height)
        costs = {key: Cost() for key in loaded}
        answers: dict[tuple[str, str], Array] = {}
        for key, engine in loaded.items():
            answers[key] = engine(frame)  # the first call prepares
        for _ in range(args.rounds):
            for key, engine in loaded.items():
                measure(engine, frame, costs[key])
        first = next(iter(costs.values())).cpu
        for (name, runtime), cost in costs.items():
            own = next(answer for key, answer in answers.items() if key[0] == name)
            worst = 255 * np.abs(answers[name, runtime] - own).max()
            each = cost.cpu / (width * height / 1e6)
            lines.append(
                f"| {name} | {runtime} | {width}x{height} | {each:.3f} "
                f"| {cost.cpu / first:.2f} | {1000 * cost.wall:.0f} | {worst:.3f} |"
            )
    return "\n".join(lines)


def size_of(text: str) -> tuple[int, int]:
    """Read WIDTHxHEIGHT.

    Raises:
        UsageError: If it is something else.
    """
    width, _, height = text.partition("x")
    if not (width.isdigit() and height.isdigit() and int(width) and int(height)):
        raise UsageError(f"--sizes: {text} is not a size such as 854x480")
    return int(width), int(height)


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(description="Compare the runtimes on a model in one run.")
    parser.add_argument("models", nargs="+", help="names, safetensors or onnx files")
    parser.add_argument("--sizes", nargs="+", default=["854x480", "1920x1080"])
    parser.add_argument("--slots", type=int, default=5, help="slots of the hyperframe")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args(argv)
    try:
        print(table(args.models, [size_of(text) for text in args.sizes], args))
    except RestoreError as error:
        print(f"runtimes: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
