"""A value with its interval as a bar, for a table's cell; the figures stand beside the bar as text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

_WIDTH, _MIDDLE = 1000, 12
_WIDEST = 2.5
"""The axis ends at most at so many times the longest bar; longer intervals are cut there."""


@dataclass(frozen=True)
class Interval:
    """A value, 0 or more, and the ends of its interval. ``mark``: another value on the same axis."""

    value: float
    low: float
    high: float
    mark: float | None = None


def axis_end(shown: Iterable[Interval]) -> float:
    """The end of an axis that begins at 0 and shows all these intervals."""
    listed = list(shown)
    longest = max((max(one.value, one.mark or 0.0) for one in listed), default=0.0)
    return min(max((one.high for one in listed), default=0.0), _WIDEST * longest) or longest or 1.0


def interval_bar(one: Interval, end: float, *, kind: str = "bar", best: bool = False) -> Markup:
    """The bar, or with ``kind`` "point" a point, and its interval. An interval that is cut has no end cap."""

    def x(value: float) -> float:
        return round(min(1.0, max(0.0, value / end)) * _WIDTH, 1)

    low, high = x(one.low), x(one.high)
    value = Markup('<rect class="value" x="0" y="5" width="{}" height="14"/>').format(x(one.value))
    if kind == "point":
        value = Markup('<path class="point" vector-effect="non-scaling-stroke" d="M{} 4V20"/>').format(
            x(one.value)
        )
    cap = Markup("M{} 7V17").format(high) if one.high <= end * (1 + 1e-9) else ""
    mark = (
        Markup('<path class="mark" vector-effect="non-scaling-stroke" d="M{} 1V23"/>').format(x(one.mark))
        if one.mark is not None
        else ""
    )
    return Markup(
        '<svg class="interval{}" viewBox="0 0 {} 24" preserveAspectRatio="none" aria-hidden="true">{}'
        '<path class="whisker" vector-effect="non-scaling-stroke" d="M{} 7V17M{} {}H{}{}"/>{}</svg>'
    ).format(" best" if best else "", _WIDTH, value, low, low, _MIDDLE, high, cap, mark)
