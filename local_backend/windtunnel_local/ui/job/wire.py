"""Lines of a log as JSON for the page's script: as short lists, because there may be thousands a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windtunnel_local.ui.job.log_pages import Line, LogPage
from windtunnel_local.ui.job.log_position import Position, written


def lines_up_to(lines: Sequence[Line], end: Position) -> dict[str, Any]:
    """Lines as a document.

    ``streams``: names. ``lines``: each has the index of its stream, sequence number, Unix ms, text, and the length of
    the whole line if the text is cut. ``end``: the position after the lines.
    """
    names = sorted({line.stream for line in lines})
    places = {name: place for place, name in enumerate(names)}
    return {
        "streams": names,
        "lines": [[places[one.stream], one.sequence, one.time_ms, one.text, one.length] for one in lines],
        "end": written(end),
    }


def page_of_lines(page: LogPage) -> dict[str, Any]:
    """As `lines_up_to`, with the position before the lines, and whether more follow in the reading direction."""
    return {**lines_up_to(page.lines, page.end), "begin": written(page.begin), "more": page.more}
