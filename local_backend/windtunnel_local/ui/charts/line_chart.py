"""Values over time as lines.

    series ─▶ drawable ─▶ thinned ─▶ places on two axes ─▶ <svg>

The stylesheet sets how the lines look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from windtunnel_local.service.ground.printable import printable
from windtunnel_local.ui.charts.downsample import Point, drawable, thinned
from windtunnel_local.ui.charts.scale import Axis, time_axis, value_axis

MOST_POINTS = 300
_WIDTH, _HEIGHT = 420, 190
"""About the size on the screen in pixels, on a phone too: the chart's letters are as large as the page's."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 54, 12, 10, 26
DOTS_UP_TO = 40
"""Up to so many points are also drawn as dots, each with its value as tooltip."""
COLOURS = 6
"""Line styles that the stylesheet has: ``.series-1`` to ``.series-6``."""


@dataclass(frozen=True)
class Series:
    """A line. ``points``: seconds since the start and value, sorted by time. ``colour``: the line's number, from 0."""

    name: str
    points: Sequence[Point]
    colour: int = 0


def line_chart(
    name: str,
    series: Sequence[Series],
    *,
    key: str,
    most_points: int = MOST_POINTS,
    dots_up_to: int = DOTS_UP_TO,
) -> Markup:
    """The chart as ``<svg>``. ``key``: prefix of the ids in it, unique in the page: letters, digits and hyphens."""
    drawn = [Series(one.name, drawable(one.points), one.colour) for one in series]
    values = [value for one in drawn for _, value in one.points]
    end_s = max((moment for one in drawn for moment, _ in one.points), default=0.0)
    across, up = time_axis(end_s), value_axis(values)
    title, text = f"{name} over time", " ".join(map(described, drawn))
    lines = Markup("").join(_line(one, across, up, most_points, dots_up_to) for one in drawn)
    return Markup(
        '<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-labelledby="{key}-t {key}-d">'
        '<title id="{key}-t">{title}</title><desc id="{key}-d">{text}</desc>{grid}{lines}</svg>'
    ).format(
        width=_WIDTH,
        height=_HEIGHT,
        key=key,
        title=printable(title),
        text=printable(text),
        grid=_grid(across, up),
        lines=lines,
    )


def described(one: Series) -> str:
    """The line in words, for screen readers."""
    if not one.points:
        return f"{one.name}: no value yet."
    points = one.points
    low, high = min(points, key=lambda point: point[1]), max(points, key=lambda point: point[1])
    values = f"first {_short(points[0][1])}, last {_short(points[-1][1])}"
    extremes = (
        f"lowest {_short(low[1])} after {low[0]:,.0f} s, highest {_short(high[1])} after {high[0]:,.0f} s"
    )
    count = "1 value" if len(points) == 1 else f"{len(points):,} values"
    return f"{one.name}: {count} up to {points[-1][0]:,.0f} s; {values}, {extremes}."


def _grid(across: Axis, up: Axis) -> Markup:
    """Lines and labels of both axes; a screen reader has the description instead."""
    parts = [Markup('<g class="grid" aria-hidden="true">')]
    for value, label in zip(up.ticks, up.labels, strict=True):
        y = _y(up, value)
        parts.append(
            Markup('<path d="M{} {:.1f}H{}"/><text class="up" x="{}" y="{:.1f}">{}</text>').format(
                _LEFT, y, _WIDTH - _RIGHT, _LEFT - 6, y + 4, label
            )
        )
    for value, label in zip(across.ticks, across.labels, strict=True):
        parts.append(
            Markup('<text class="across" x="{:.1f}" y="{}">{}</text>').format(
                _x(across, value), _HEIGHT - 8, label
            )
        )
    return Markup("").join([*parts, Markup("</g>")])


def _line(one: Series, across: Axis, up: Axis, most_points: int, dots_up_to: int) -> Markup:
    points = [(_x(across, moment), _y(up, value)) for moment, value in thinned(one.points, most_points)]
    if not points:
        return Markup("")
    colour = one.colour % COLOURS + 1
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    line = Markup('<polyline class="series series-{}" points="{}"/>').format(colour, path)
    if len(one.points) > max(1, dots_up_to):
        return line
    dots = (
        Markup(
            '<circle class="dot series-{}" cx="{:.1f}" cy="{:.1f}" r="3"><title>{}</title></circle>'
        ).format(colour, x, y, printable(f"{one.name} {_short(value)} after {moment:,.1f} s"))
        for (x, y), (moment, value) in zip(points, one.points, strict=True)
    )
    return line + Markup("").join(dots)


def _x(axis: Axis, value: float) -> float:
    return _LEFT + axis.place(value) * (_WIDTH - _LEFT - _RIGHT)


def _y(axis: Axis, value: float) -> float:
    return _HEIGHT - _BOTTOM - axis.place(value) * (_HEIGHT - _TOP - _BOTTOM)


def _short(value: float) -> str:
    """Four significant digits, or whole numbers."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"
