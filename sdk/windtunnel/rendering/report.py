"""Base of all reports: draws itself in a terminal, in a notebook, as a page, as Markdown, as charts, as data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.priceperf.errors import InvalidInput
from windtunnel.rendering.document import Document

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

    from windtunnel.rendering.plots.chart import Chart
    from windtunnel.rendering.plots.style import ThemeName

TEXT_WIDTH = 100
PNG_DPI = 200


class Report:
    """A report that draws itself: ``print``, rich, notebooks, HTML files, Markdown, charts."""

    def document(self) -> Document:
        """The report as sections."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        raise NotImplementedError

    def charts(self) -> tuple[Chart, ...]:
        """The report's charts, in reading order; needs no matplotlib until one is drawn."""
        return ()

    def plot(self, kind: str | None = None, theme: ThemeName = "light") -> Any:
        """A chart as a matplotlib Figure (extra ``plot``).

        Args:
            kind: which of `charts`; None: all, one below the other.
            theme: ``light``, ``dark``, or ``print`` for black and white. No theme distinguishes by colour alone.

        Raises:
            ImportError: matplotlib is not installed; the message names the extra.
            InvalidInput: no such chart or theme, or there is nothing to draw.
        """
        from windtunnel.rendering.plots.chart import stacked

        charts = self.charts()
        if not charts:
            raise InvalidInput(f"nothing to plot: {self._no_charts()}")
        chosen = [chart for chart in charts if kind in (None, chart.kind)]
        if not chosen:
            raise InvalidInput(f"kind must be one of {', '.join(c.kind for c in charts)}, not {kind!r}")
        return stacked(chosen, theme)

    def to_png(self, path: str | Path, kind: str | None = None, theme: ThemeName = "light") -> None:
        """Write `plot` to a PNG file. Raises what `plot` raises, and OSError if the file cannot be written."""
        self.plot(kind, theme).savefig(path, format="png", dpi=PNG_DPI)

    def to_html(self, path: str | Path | None = None) -> str:
        """The report as one HTML file with its charts inside; it loads nothing, and suits light, dark and paper.

        Without matplotlib the page has no charts, and says which extra adds them.

        Args:
            path: a file to write the page to, in UTF-8.

        Raises:
            OSError: ``path`` cannot be written.
        """
        from windtunnel.rendering.page import as_page

        page = as_page(self.document(), self.charts())
        if path is not None:
            Path(path).write_text(page, encoding="utf-8", errors="replace")
        return page

    def to_markdown(self, path: str | Path | None = None, *, full: bool = False) -> str:
        """The report as GitHub-flavoured Markdown, without charts.

        Args:
            path: a file to write the text to, in UTF-8.
            full: all of the report; else its first screen.

        Raises:
            OSError: ``path`` cannot be written.
        """
        from windtunnel.rendering.markdown import as_markdown

        text = as_markdown(self.document(), full=full)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8", errors="replace")
        return text

    def to_json(self) -> str:
        """`to_dict` as indented JSON."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_text(self, width: int = TEXT_WIDTH, *, full: bool = False) -> str:
        """The report as plain text of at most ``width`` columns: its first screen or, if ``full``, all of it."""
        from windtunnel.rendering.text import as_text

        return as_text(self.document(), width, full=full)

    def __str__(self) -> str:
        """The text that ``print`` shows: the first screen."""
        return self.to_text()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw in a rich console."""
        from windtunnel.rendering.text import renderables

        return renderables(self.document())

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        from windtunnel.rendering.html import as_html

        return as_html(self.document())

    def _no_charts(self) -> str:
        """Why the report has no chart, for an error."""
        return "this report has no charts."
