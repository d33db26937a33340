"""Draw the README's curve: quality against CPU time, all candidates of one run of the benchmark.

    python experiments/figures.py RESULT.json --out experiments/figures/cost.svg

RESULT.json is what the benchmark writes with `--json`.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

UNIT = "ffmpeg-nlmeans"
NAMES = {"product": "restore"}


def points(rows: list[dict[str, Any]]) -> dict[str, dict[str, tuple[float, float]]]:
    """Average the rows of each level and candidate over the clips.

    Args:
        rows: The benchmark's rows; those that failed have no PSNR.

    Returns:
        By level and candidate: CPU seconds for a megapixel over all levels, and PSNR in dB.
    """
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    cost: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in rows:
        if row.get("psnr") is None or not row["cpu_s"]:
            continue
        scores[row["level"]][row["peer"]].append(row["psnr"])
        cost[row["peer"]][0] += row["cpu_s"]
        cost[row["peer"]][1] += row["megapixels"]
    return {
        level: {
            peer: (cost[peer][0] / cost[peer][1], sum(found) / len(found))
            for peer, found in peers.items()
        }
        for level, peers in scores.items()
    }


def draw(levels: dict[str, dict[str, tuple[float, float]]], target: Path) -> None:
    """Draw one panel a level, CPU time relative to `UNIT` on a logarithmic axis."""
    pyplot.rcParams.update({"svg.fonttype": "none", "font.size": 9, "svg.hashsalt": "restore"})
    figure, panels = pyplot.subplots(
        1, len(levels), figsize=(4.4 * len(levels), 3.2), layout="constrained", squeeze=False
    )
    for panel, (level, peers) in zip(panels[0], levels.items(), strict=True):
        unit = peers[UNIT][0]
        ordered = sorted(peers.items(), key=lambda item: item[1])
        for number, (peer, (seconds, psnr)) in enumerate(ordered):
            ours = peer == "product"
            style: dict[str, Any] = {"color": "#c2410c" if ours else "#475569"}
            panel.scatter(seconds / unit, psnr, s=60 if ours else 22, zorder=3, **style)
            panel.annotate(
                NAMES.get(peer, peer.removeprefix("ffmpeg-").removeprefix("vs-")),
                (seconds / unit, psnr),
                xytext=(7 if number % 2 else -7, 0),  # neighbours do not cover each other
                textcoords="offset points",
                ha="left" if number % 2 else "right",
                va="center",
                weight="bold" if ours else "normal",
                **style,
            )
        panel.set(xscale="log", title=f"σ {level}", xlabel="CPU time / FFmpeg nlmeans")
        panel.margins(0.3)
        panel.grid(alpha=0.3)
        panel.xaxis.set_major_formatter("{x:g}")
    panels[0][0].set_ylabel("PSNR, dB")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, metadata={"Date": None})


def main() -> None:
    """Read the arguments and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, nargs="+", help="files written with --json")
    parser.add_argument("--case", default="awgn8", help="which case of the benchmark")
    parser.add_argument("--out", type=Path, default=Path("experiments/figures/cost.svg"))
    options = parser.parse_args()
    rows = [row for path in options.results for row in json.loads(path.read_text())["rows"]]
    draw(points([row for row in rows if row["case"] == options.case]), options.out)


if __name__ == "__main__":
    main()
