"""Line plots as SVG, styled by the page's own colours, so that they follow light and dark."""

import html
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

_WIDTH, _HEIGHT = 380, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 8, 8, 30
_MAX_POINTS = 400


@dataclass(frozen=True)
class Line:
    """One curve."""

    label: str
    style: str
    """CSS class that colours it."""
    x: Sequence[float]
    y: Sequence[float]


def line_plot(title: str, x_label: str, lines: Sequence[Line], *, digits: int = 2) -> str:
    """Return a figure with a title, axes with round numbers and one path a curve.

    Points that are not numbers are left out; long curves are averaged down. The points are attached
    as JSON for the page's script, which shows the values under the pointer.
    """
    curves = [_thinned(line) for line in lines]
    curves = [line for line in curves if line.y]
    if not curves:
        return ""
    xs = [value for line in curves for value in line.x]
    ys = [value for line in curves for value in line.y]
    y_ticks = ticks(min(ys), max(ys))
    across = _Axis(min(xs), max(xs), _LEFT, _WIDTH - _RIGHT)
    up = _Axis(min(y_ticks[0], *ys), max(y_ticks[-1], *ys), _HEIGHT - _BOTTOM, _TOP)
    parts = [*_grid(across, ticks(min(xs), max(xs)), up, y_ticks, x_label)]
    data = []
    for line in curves:
        points = [(across(x), up(y)) for x, y in zip(line.x, line.y, strict=True)]
        parts.append(_curve(line.style, points))
        values = [
            [point[0], _number(x), f"{y:.{digits}f}"]
            for point, x, y in zip(points, line.x, line.y, strict=True)
        ]
        data.append({"label": line.label, "points": values})
    legend = "".join(
        f'<span><i class="{line.style}"></i>{html.escape(line.label)}</span>' for line in curves
    )
    return (
        f'<figure class="plot"><figcaption>{html.escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html.escape(title)}" '
        f'data-lines="{html.escape(json.dumps(data), quote=True)}">'
        + "".join(parts)
        + f'<line class="cursor" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}" x1="-9" x2="-9"/></svg>'
        f'<p class="legend">{legend}</p><p class="readout">&nbsp;</p></figure>'
    )


@dataclass(frozen=True)
class _Axis:
    """Places values of [low, high] between two coordinates."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        width = self.high - self.low
        share = (value - self.low) / width if width else 0.5
        return round(self.start + share * (self.end - self.start), 1)


def _grid(
    across: _Axis, x_ticks: Sequence[float], up: _Axis, y_ticks: Sequence[float], x_label: str
) -> Iterator[str]:
    for value in y_ticks:
        y = up(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{_LEFT - 5}" y="{y + 4}" text-anchor="end">{_number(value)}</text>'
    for value in x_ticks:
        place = f'x="{across(value)}" y="{_HEIGHT - 14}"'
        yield f'<text {place} text-anchor="middle">{_number(value)}</text>'
    place = f'x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 2}"'
    yield f'<text {place} text-anchor="end">{html.escape(x_label)}</text>'


def _curve(style: str, points: Sequence[tuple[float, float]]) -> str:
    if len(points) == 1:
        return f'<circle class="{style}" cx="{points[0][0]}" cy="{points[0][1]}" r="2.5"/>'
    return f'<path class="{style}" d="M{"L".join(f"{x},{y}" for x, y in points)}"/>'


def _thinned(line: Line) -> Line:
    pairs = [
        (x, y) for x, y in zip(line.x, line.y, strict=True) if math.isfinite(y) and math.isfinite(x)
    ]
    groups = -(-len(pairs) // _MAX_POINTS) or 1
    means = [np.mean(pairs[i : i + groups], axis=0) for i in range(0, len(pairs), groups)]
    return Line(line.label, line.style, [float(m[0]) for m in means], [float(m[1]) for m in means])


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Return about `count` round numbers that span or lie in [low, high]."""
    span = (high - low) or max(abs(high), 1.0) * 0.1
    raw = span / count
    unit = 10 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= raw)
    first = math.ceil(low / step - 1e-9)
    last = max(math.floor(high / step + 1e-9), first)
    return [step * number for number in range(first, last + 1)]


def _number(value: float) -> str:
    return f"{value:.4g}" if abs(value) >= 1e-9 else "0"
