"""Lines of a log as the page's script reads them: short lists, for there may be thousands a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windtunnel_local.ui.job.log_pages import Line, LogPage
from windtunnel_local.ui.job.log_position import Position, written


def lines_up_to(lines: Sequence[Line], end: Position) -> dict[str, Any]:
    """``streams``: names. ``lines``: place among them, sequence, Unix ms, text, length of the whole where it is cut.
    ``end``: the place behind them.
    """
    names = sorted({line.stream for line in lines})
    places = {name: place for place, name in enumerate(names)}
    return {
        "streams": names,
        "lines": [[places[one.stream], one.sequence, one.time_ms, one.text, one.length] for one in lines],
        "end": written(end),
    }


def page_of_lines(page: LogPage) -> dict[str, Any]:
    """With the place in front of them, and whether there is more in the direction that was asked for."""
    return {**lines_up_to(page.lines, page.end), "begin": written(page.begin), "more": page.more}
