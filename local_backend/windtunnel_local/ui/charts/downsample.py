"""Fewer points for a chart that looks the same."""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel_local.ui.charts.scale import LARGEST

Point = tuple[float, float]


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """At most ``most`` (4 or more) of the points, in their order: the lowest and the highest of each section.

    So no peak is lost, as would happen with averages or every n-th point. The first and the last point stay.
    """
    if len(points) <= most:
        return list(points)
    inner = points[1:-1]
    stretches = (most - 2) // 2
    kept = [points[0]]
    for number in range(stretches):
        begin, end = (len(inner) * place // stretches for place in (number, number + 1))
        stretch = inner[begin:end]
        low = min(range(len(stretch)), key=lambda at: stretch[at][1])
        high = max(range(len(stretch)), key=lambda at: stretch[at][1])
        kept += [stretch[at] for at in sorted({low, high})]
    return [*kept, points[-1]]


def drawable(points: Sequence[Point]) -> list[Point]:
    """The points that can be drawn: a loss may be NaN or infinite."""
    return [point for point in points if all(abs(number) <= LARGEST for number in point)]
