"""A chart of values by number of instances: logarithmic axes, a line for each instance type, points with intervals.

Lines differ by their dashes and the form of their points as well as by colour. A table beside the chart has the
figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from windtunnel.rendering import format as fmt
from windtunnel_local.ui.charts.line_chart import COLOURS

_WIDTH, _HEIGHT = 460, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 12, 46
_SIZE = 4.5
_FORMS = (
    "M{x:.1f} {t:.1f}L{r:.1f} {y:.1f}L{x:.1f} {b:.1f}L{l:.1f} {y:.1f}Z",
    "M{l:.1f} {t:.1f}H{r:.1f}V{b:.1f}H{l:.1f}Z",
    "M{x:.1f} {t:.1f}L{r:.1f} {b:.1f}H{l:.1f}Z",
    "M{x:.1f} {b:.1f}L{r:.1f} {t:.1f}H{l:.1f}Z",
    "M{l:.1f} {t:.1f}L{r:.1f} {b:.1f}M{l:.1f} {b:.1f}L{r:.1f} {t:.1f}",
    "M{l:.1f} {y:.1f}H{r:.1f}M{x:.1f} {t:.1f}V{b:.1f}",
)


@dataclass(frozen=True)
class Point:
    """The value at a number of instances, with its interval; all above 0. ``words``: both as text, for the tooltip."""

    count: int
    value: float
    low: float
    high: float
    words: str


@dataclass(frozen=True)
class Line:
    """An instance type's points, sorted by number of instances. ``colour``: the line's number, from 0."""

    name: str
    points: Sequence[Point]
    colour: int


def by_count_chart(title: str, unit: str, lines: Sequence[Line], *, key: str) -> Markup:
    """The chart as ``<svg>``; empty if no line has a point. ``key``: prefix of the ids in it, unique in the page."""
    points = [point for line in lines for point in line.points if point.value > 0]
    if not points:
        return Markup("")
    counts = sorted({point.count for point in points})
    low = min(
        min(p.value for p in points) / 1.5, max(min(p.low for p in points), min(p.value for p in points) / 4)
    )
    high = max(
        max(p.value for p in points) * 1.5, min(max(p.high for p in points), max(p.value for p in points) * 4)
    )
    place = _Place(math.log(counts[0]) - 0.15, math.log(counts[-1]) + 0.15, math.log(low), math.log(high))
    return Markup(
        '<svg class="chart by-count" viewBox="0 0 {} {}" role="img" aria-labelledby="{key}-t {key}-d">'
        '<title id="{key}-t">{}</title><desc id="{key}-d">{}</desc>{}{}</svg>'
    ).format(
        _WIDTH,
        _HEIGHT,
        title,
        " ".join(f"{line.name}: {'; '.join(point.words for point in line.points)}." for line in lines),
        Markup("").join(_grid(place, counts, low, high, unit)),
        Markup("").join(_line(place, line) for line in lines),
        key=key,
    )


def legend_key(colour: int, *, form: bool = True) -> Markup:
    """A sample of a line for the legend. ``form``: with the form of its points."""
    drawn = _form(18.0, 7.0, colour) if form else ""
    return Markup(
        '<svg class="sample" viewBox="0 0 36 14" aria-hidden="true"><path class="series series-{0}" d="M1 7H35"/>'
        '<path class="form series-{0}" d="{1}"/></svg>'
    ).format(colour % COLOURS + 1, drawn)


@dataclass(frozen=True)
class _Place:
    left: float
    right: float
    low: float
    high: float

    def x(self, count: float) -> float:
        return _LEFT + (math.log(count) - self.left) / (self.right - self.left) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = (math.log(max(value, 1e-300)) - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - min(1.0, max(0.0, share)) * (_HEIGHT - _TOP - _BOTTOM)


def _grid(place: _Place, counts: Sequence[int], low: float, high: float, unit: str) -> Iterator[Markup]:
    yield Markup('<g class="grid" aria-hidden="true">')
    for value in _ticks(low, high):
        y = place.y(value)
        yield Markup('<path d="M{} {:.1f}H{}"/><text class="up" x="{}" y="{:.1f}">{}</text>').format(
            _LEFT, y, _WIDTH - _RIGHT, _LEFT - 6, y + 4, _number(value)
        )
    for count in counts:
        yield Markup('<text class="across" x="{:.1f}" y="{}">{}</text>').format(
            place.x(count), _HEIGHT - _BOTTOM + 18, count
        )
    yield Markup('<text class="across" x="{}" y="{}">instances; up: {}</text></g>').format(
        (_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, unit
    )


def _line(place: _Place, line: Line) -> Markup:
    colour = line.colour % COLOURS + 1
    found = [(place.x(p.count) + (line.colour % 3 - 1) * 2.5, p) for p in line.points if p.value > 0]
    path = " ".join(f"{x:.1f},{place.y(p.value):.1f}" for x, p in found)
    whiskers = "".join(f"M{x:.1f} {place.y(p.low):.1f}V{place.y(p.high):.1f}" for x, p in found)
    marks = Markup("").join(
        Markup('<path class="form series-{}" d="{}"><title>{}</title></path>').format(
            colour, _form(x, place.y(p.value), line.colour), f"{line.name}, {p.words}"
        )
        for x, p in found
    )
    return Markup(
        '<path class="span series-{0}" d="{1}"/><polyline class="series series-{0}" points="{2}"/>{3}'
    ).format(colour, whiskers, path, marks)


def _form(x: float, y: float, number: int) -> str:
    form = _FORMS[number % len(_FORMS)]
    return form.format(x=x, y=y, l=x - _SIZE, r=x + _SIZE, t=y - _SIZE, b=y + _SIZE)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between the two: 1, 2 and 5 times each power of ten, or only the powers if that gives too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    found = [value for value in fine if low <= value <= high]
    return (
        found
        if len(found) <= 7
        else [value for value in (10.0**power for power in powers) if low <= value <= high]
    )


def _number(value: float) -> str:
    size, sign = fmt.short_unit(value) if value >= 1e6 else (1.0, "")
    return f"{fmt.significant(value / size, 1)}{sign}"
