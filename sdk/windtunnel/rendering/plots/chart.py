"""One chart: what it shows in words, and how it is drawn on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from windtunnel.rendering.plots.style import Theme, ThemeName, settings, theme_named

MISSING = "charts need matplotlib: pip install 'windtunnel[plot]'"


@dataclass(frozen=True)
class Chart:
    """A chart of a report.

    Attributes:
        kind: its name in ``plot(kind=...)``.
        title: of the chart, also shown in it.
        caption: what to know when reading it.
        words: what a reader who does not see it must know.
        size_in: width and height, inches.
        after: title of the section behind which it stands; "": behind what is read first.
        draw: draws on a matplotlib Figure or SubFigure.
    """

    kind: str
    title: str
    caption: str
    words: str
    size_in: tuple[float, float]
    draw: Callable[[Any, Theme], None]
    after: str = ""

    def figure(self, theme: ThemeName = "light") -> Any:
        """A matplotlib Figure. ``figure.savefig("chart.png", dpi=200)`` writes it.

        Raises:
            ImportError: matplotlib is missing; the message names the extra.
            InvalidInput: no such theme.
        """
        return stacked([self], theme)


def stacked(charts: Sequence[Chart], theme: ThemeName = "light") -> Any:
    """One Figure of all of ``charts``, one below the other. Raises as `Chart.figure`."""
    colours = theme_named(theme)
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(MISSING) from error
    heights = [chart.size_in[1] for chart in charts]
    with rc_context(settings(colours)):
        figure = Figure(
            figsize=(max(chart.size_in[0] for chart in charts), sum(heights)), layout="constrained"
        )
        if len(charts) == 1:
            charts[0].draw(figure, colours)
            return figure
        parts = figure.subfigures(len(charts), 1, height_ratios=heights, squeeze=False)
        for chart, part in zip(charts, parts[:, 0], strict=True):
            chart.draw(part, colours)
    return figure


def available() -> bool:
    """Whether charts can be drawn here."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None
