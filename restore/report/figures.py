"""What each figure is called, how it is read, and when it is a warning."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from restore.metrics.evaluate import Evaluation


@dataclass(frozen=True)
class Figure:
    """How one figure is shown."""

    label: str
    unit: str
    digits: int
    good: str
    """'high', 'low', 'one' (closer to 1 is better) or '' (neither)."""
    meaning: str


FIGURES: dict[str, Figure] = {
    "psnr": Figure("PSNR", "dB", 2, "high", "RGB, mean of the frames"),
    "psnr_sequence": Figure("PSNR of sequence", "dB", 2, "high", "RGB, of the mean error"),
    "psnr_y": Figure("PSNR-Y", "dB", 2, "high", "BT.601 luma, mean of the frames"),
    "ssim": Figure("SSIM", "", 4, "high", "structural similarity, 11x11 Gaussian"),
    "ms_ssim": Figure("MS-SSIM", "", 4, "high", "structural similarity over five scales"),
    "lpips": Figure("LPIPS", "", 4, "low", "perceived difference (AlexNet)"),
    "detail_lost": Figure(
        "detail lost", "", 3, "low", "share of the finest structures (2-4 pixels) that is missing"
    ),
    "high_gain_db": Figure(
        "fine power", "dB", 2, "", "power at 2-4 pixels: below 0 smoother, above 0 noisier"
    ),
    "warp": Figure(
        "warping error", "", 3, "one", "change along the motion; 1 as the reference, above flickers"
    ),
    "flicker": Figure("flicker", "/255", 2, "low", "temporal noise where nothing moves"),
    "tof": Figure("tOF", "px", 3, "low", "distance between the motion seen in both clips"),
    "tlp": Figure("tLP", "", 4, "low", "difference of LPIPS from frame to frame"),
    "ghosting": Figure(
        "ghosting", "", 3, "low", "share of a neighbouring frame left in uncovered places"
    ),
    "noise_before": Figure("noise before", "/255", 2, "", "estimated in the input"),
    "noise_after": Figure("noise after", "/255", 2, "low", "estimated in the output"),
    "removed": Figure("removed", "/255", 2, "", "standard deviation of input minus output"),
    "structure": Figure(
        "structure removed", "", 3, "low", "likeness of what was removed to the detail that is left"
    ),
    "whiteness": Figure(
        "whiteness", "", 3, "high", "evenness of the removed noise's spectrum; video noise: 0.5-1"
    ),
    "flicker_before": Figure("flicker before", "/255", 2, "", "in the calmest blocks"),
    "flicker_after": Figure("flicker after", "/255", 2, "low", "in the same blocks"),
}
"""In the order of the table."""


def show(name: str, value: float) -> str:
    """Format a figure, '-' for one that could not be measured."""
    return "-" if math.isnan(value) else f"{value:.{FIGURES[name].digits}f}"


def verdicts(mean: Mapping[str, float]) -> list[str]:
    """Say in words what the figures warn of; empty when nothing stands out.

    The limits lie well above what faithful restorations reach and below what the failures they
    are named for reach, so a warning is worth a look at the pictures.
    """
    limits = (
        ("detail_lost", 0.35, "{:.0%} of the finest detail is gone: blurred"),
        ("flicker", 2.0, "static places flicker by {:.1f}/255"),
        ("ghosting", 0.08, "{:.0%} of neighbouring frames shows in uncovered places: ghosts"),
        ("warp", 1.3, "less steady than the reference ({:.2f} times the change along the motion)"),
        ("structure", 0.15, "what was removed looks like the picture (correlation {:.2f})"),
    )
    found = []
    for name, limit, text in limits:
        value = mean.get(name, math.nan)
        if value > limit:
            found.append(text.format(value))
    before, after = mean.get("flicker_before", math.nan), mean.get("flicker_after", math.nan)
    if after > before + 0.25:
        found.append(f"flickers more than the input ({after:.1f} after {before:.1f})")
    return found


def shown_names(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return the figures that at least one evaluation has, in the order of the table."""
    return [
        name
        for name in FIGURES
        if any(not math.isnan(e.mean.get(name, math.nan)) for e in evaluations)
    ]


def text_table(evaluations: Sequence[Evaluation]) -> str:
    """Return the figures as lines of text, one row a figure, one column an output."""
    heads = ["", *(e.output.name for e in evaluations), ""]
    rows = []
    for name in shown_names(evaluations):
        figure = FIGURES[name]
        label = f"{figure.label} ({figure.unit})" if figure.unit else figure.label
        values = [show(name, e.mean.get(name, math.nan)) for e in evaluations]
        rows.append([label, *values, figure.meaning])
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    lines = []
    for row in [heads, *rows]:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    for e in evaluations:
        lines += [f"{e.output.name}: {text}" for text in verdicts(e.mean)]
        lines += [f"note: {note}" for note in e.notes]
    return "\n".join(dict.fromkeys(lines))


def as_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return an evaluation as plain types; figures that could not be measured are None."""
    return {
        "input" if evaluation.blind else "reference": str(evaluation.reference),
        "output": str(evaluation.output),
        "mean": {name: _plain(value) for name, value in evaluation.mean.items()},
        "warnings": verdicts(evaluation.mean),
        "notes": evaluation.notes,
        "frames": [
            {name: _plain(value) for name, value in frame.items()} for frame in evaluation.frames
        ],
    }


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)


def as_csv(evaluations: Sequence[Evaluation]) -> str:
    """Return one line a frame: output, frame, time and every figure of single frames."""
    known = {name for e in evaluations for frame in e.frames for name in frame}
    names = [name for name in FIGURES if name in known]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["output", "frame", "time", *names])
    for e in evaluations:
        for number, frame in enumerate(e.frames):
            values = [_plain(frame.get(name, math.nan)) for name in names]
            writer.writerow([e.output, number, round(frame["time"], 6), *values])
    return text.getvalue()
