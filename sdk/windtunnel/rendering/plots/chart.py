"""One chart: its description in words, and the function that draws it on demand."""

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
        kind: name of the chart in ``plot(kind=...)``.
        title: title of the chart, also drawn in it.
        caption: explanation for its readers.
        words: description of its content for readers who cannot see it (aria-label).
        size_in: width and height, inches.
        after: title of the section after which a page shows the chart; "": after the first screen's sections.
        draw: draws the chart on a matplotlib Figure or SubFigure.
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
    """One Figure with all ``charts``, one below the other. Raises what `Chart.figure` raises."""
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
    """Whether charts can be drawn: matplotlib is installed."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None
