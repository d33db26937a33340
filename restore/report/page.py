"""Put an evaluation on one self-contained HTML page."""

import html
import json
import math
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

import restore
from restore.errors import OutputError
from restore.io import Seconds
from restore.metrics.evaluate import Evaluation, evaluate, evaluate_blind
from restore.report.figures import FIGURES, show, shown_names, verdicts
from restore.report.pictures import Gallery, collect, sprite, webp
from restore.report.plots import Line, line_plot

_CURVES = ("psnr", "ssim", "lpips", "warp", "flicker", "tof", "removed", "structure")
_PACKAGES = ("numpy", "opencv-python", "opencv-python-headless", "av", "torch", "lpips")
_STYLES = 4


def write_report(
    path: str | Path,
    before: str | Path,
    after: str | Path,
    *,
    reference: str | Path | None = None,
    start: Seconds | None = None,
    duration: Seconds | None = None,
    lpips: bool | None = None,
    command: str = "",
    overwrite: bool = False,
) -> list[Evaluation]:
    """Write the report of a restoration run.

    Args:
        path: The HTML file to write.
        before: The input of the run.
        after: Its output.
        reference: The clean clip, if there is one.
        start: Seconds of the input that the run skipped.
        duration: Seconds of the input that the run took.
        lpips: Whether to take LPIPS against the reference; None if its network is installed.
        command: The command line, shown in the report.
        overwrite: Whether an existing file may be replaced.

    Returns:
        The evaluations that the report shows.

    Raises:
        InputError: If a video cannot be read or does not match the others.
        OutputError: If the file exists or cannot be written.
    """
    check_writable(path, overwrite=overwrite)
    groups = [evaluate_blind(before, [after], start=start, duration=duration)]
    if reference is not None:
        clips = [before, after]
        found = evaluate(reference, clips, start=start, duration=duration, lpips=lpips)
        groups.insert(0, found)
    render_report(path, *groups, command=command, overwrite=overwrite)
    return [evaluation for group in groups for evaluation in group]


def check_writable(path: str | Path, *, overwrite: bool) -> None:
    """Refuse early what could not be written after a long run.

    Raises:
        OutputError: If the file exists and may not be replaced, or its folder does not exist.
    """
    path = Path(path)
    if path.exists() and not overwrite:
        raise OutputError(f"{path}: exists already; use --overwrite or another name")
    if not path.parent.is_dir():
        raise OutputError(f"{path}: its folder does not exist; make it first")


def render_report(
    path: str | Path,
    *groups: Sequence[Evaluation],
    command: str = "",
    overwrite: bool = False,
) -> None:
    """Write the report of finished evaluations; the files are read once more for the pictures.

    Args:
        path: The HTML file to write.
        groups: Evaluations of one reference or input each; pictures come from the first group.
        command: The command line, shown in the report.
        overwrite: Whether an existing file may be replaced.

    Raises:
        OutputError: If the file exists or cannot be written.
    """
    check_writable(path, overwrite=overwrite)
    page = build_page(groups, collect(groups[0]), command)
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"{path}: cannot be written ({error.strerror}); use another name"
        ) from error


def build_page(groups: Sequence[Sequence[Evaluation]], gallery: Gallery, command: str) -> str:
    """Return the page as text."""
    first = groups[0][0]
    blind = first.blind
    names = [e.output.name for e in groups[0]]
    warnings = [
        f"{e.output.name}: {text}" for group in groups for e in group for text in verdicts(e.mean)
    ]
    notes = dict.fromkeys(note for group in groups for e in group for note in e.notes)
    shown, source = ", ".join(names), first.reference.name
    title = f"{source}, restored: {shown}" if blind else f"{shown} against {source}"
    fields = {
        "title": html.escape(title),
        "subtitle": _subtitle(first),
        "verdicts": _items(warnings, "verdicts"),
        "table": "".join(_table(group) for group in groups),
        "plots": "".join(plot for group in groups for plot in _plots(group)),
        "residual_title": "What was removed" if blind else "The error against the reference",
        "residual_text": (
            "Input minus output, amplified around mid grey. Noise looks like sand; outlines and "
            "textures in it are detail that was lost."
            if blind
            else "Reference minus output, amplified around mid grey. What is left of noise looks "
            "like sand, lost detail like the picture's outlines."
        ),
        "residuals": _residuals(gallery, names),
        "notes": _items(list(notes), "soft"),
        "command": html.escape(command or "written from Python"),
        "versions": html.escape(_versions()),
        "data": _data(gallery, groups[0]),
    }
    page = files("restore.report").joinpath("template.html").read_text(encoding="utf-8")
    for name, value in fields.items():
        page = page.replace("{{" + name + "}}", value)
    return page


def _subtitle(first: Evaluation) -> str:
    seconds = first.frames[-1]["time"] - first.frames[0]["time"]
    kind = (
        "judged against its own noisy input" if first.blind else "compared with a clean reference"
    )
    return html.escape(
        f"{len(first.frames)} frames, {seconds:.1f} s, {kind}. Pictures are embedded as WebP at "
        "quality 95; figures come from the decoded frames."
    )


def _items(lines: Sequence[str], style: str) -> str:
    if not lines:
        return ""
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f'<ul class="{style}">{items}</ul>'


def _table(group: Sequence[Evaluation]) -> str:
    heads = "".join(f"<th>{html.escape(e.output.name)}</th>" for e in group)
    rows = []
    for name in shown_names(group):
        figure = FIGURES[name]
        values = [e.mean.get(name, math.nan) for e in group]
        best = _best(values, figure.good)
        cells = "".join(
            f'<td class="value{" best" if i == best else ""}">{show(name, value)}</td>'
            for i, value in enumerate(values)
        )
        unit = f' <span class="soft">{figure.unit}</span>' if figure.unit else ""
        rows.append(
            f"<tr><th>{figure.label}{unit}</th>{cells}"
            f'<td class="meaning">{html.escape(figure.meaning)}</td></tr>'
        )
    source = html.escape(group[0].reference.name)
    return (
        f"<table><thead><tr><th>against {source}</th>{heads}<th></th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _best(values: Sequence[float], good: str) -> int | None:
    """Return the column to print bold: the best of several."""
    if len(values) < 2 or not good or any(math.isnan(value) for value in values):
        return None
    target = {"high": math.inf, "low": 0.0, "one": 1.0}[good]
    ranks = [-value if math.isinf(target) else abs(value - target) for value in values]
    return ranks.index(min(ranks))


def _plots(group: Sequence[Evaluation]) -> list[str]:
    plots = []
    for name in _CURVES:
        figure = FIGURES[name]
        title = f"{figure.label} ({figure.unit})" if figure.unit else figure.label
        plots.append(line_plot(title, "s", _lines(group, name), digits=figure.digits))
    before = _lines(group[:1], "flicker_before", ["s0"], [group[0].reference.name])
    lines = before + _lines(group, "flicker_after")
    plots.append(line_plot("flicker (/255)", "s", lines))
    return [*plots, _spectrum_plot(group)]


def _lines(
    group: Sequence[Evaluation],
    name: str,
    styles: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
) -> list[Line]:
    lines = []
    for i, e in enumerate(group):
        known = [frame for frame in e.frames if name in frame]
        style = styles[i] if styles else f"s{i % _STYLES + 1}"
        label = labels[i] if labels else e.output.name
        lines.append(Line(label, style, [f["time"] for f in known], [f[name] for f in known]))
    return lines


def _spectrum_plot(group: Sequence[Evaluation]) -> str:
    lines: list[Line] = []
    for i, e in enumerate(group):
        if e.spectra is None:
            continue
        frequency = e.spectra.frequency.tolist()
        if not lines:
            lines.append(Line(e.reference.name, "s0", frequency, _decibels(e.spectra.reference)))
        lines.append(
            Line(e.output.name, f"s{i % _STYLES + 1}", frequency, _decibels(e.spectra.image))
        )
        if len(group) == 1:
            label = "removed" if e.blind else "error"
            lines.append(Line(label, "n1", frequency, _decibels(e.spectra.difference)))
    return line_plot("power spectrum (dB)", "cycles per pixel", lines, digits=1)


def _decibels(power: Any) -> list[float]:
    return list(10 * np.log10(np.maximum(power, 1e-12)))


def _residuals(gallery: Gallery, names: Sequence[str]) -> str:
    parts = []
    for still in gallery.stills:
        for name, residual in zip(names, still.residuals, strict=True):
            if residual is None:
                continue
            caption = html.escape(f"{name}, frame {still.frame} ({still.title}), x{still.gain}")
            parts.append(
                f'<figure><img src="{webp(residual, 80)}" alt="{caption}">'
                f"<figcaption>{caption}</figcaption></figure>"
            )
    return "".join(parts)


def _data(gallery: Gallery, group: Sequence[Evaluation]) -> str:
    frames = group[0].frames
    seconds = frames[-1]["time"] - frames[0]["time"]
    rate = (len(frames) - 1) / seconds if seconds > 0 else 25.0
    loops = []
    for loop in gallery.loops:
        shown = [kept for kept in loop.frames if kept]
        height, width = shown[0][0].shape[:2]
        loops.append(
            {
                "title": f"{loop.title}: {width}x{height} pixels around frame {loop.region.frame}",
                "width": width,
                "height": height,
                "rate": round(rate, 3),
                "sprites": [webp(sprite(kept), 92) if kept else None for kept in loop.frames],
            }
        )
    data = {
        "labels": [group[0].reference.name, *(e.output.name for e in group)],
        "stills": [
            {
                "title": f"frame {still.frame}, {still.title}",
                "images": [None if x is None else webp(x) for x in still.images],
            }
            for still in gallery.stills
        ],
        "loops": loops,
    }
    # Inside a script element only the end tag could break out; file names may hold anything.
    return json.dumps(data).replace("<", "\\u003c")


def _versions() -> str:
    found = [f"restore {restore.__version__}", f"Python {platform.python_version()}"]
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    return f"{', '.join(found)}; {platform.system()} {platform.machine()}; {day}"
