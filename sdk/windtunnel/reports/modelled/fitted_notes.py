"""How the notes of a first screen are cut to the lines that it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Row, Section
from windtunnel.reports.modelled.batch_and_prices import MISSING, PRICES

LINES = 25
TRUST = "Trust: "
LARGEST, CHANGE = ("Most of it: ", "Then: "), "To change: "


def fitted(table: Section, notes: Mapping[str, int], room: int, all_rows: tuple[Row, ...] = ()) -> Section:
    """The table with its notes: each cut to its number of lines, and all of them together to ``room`` lines. Its
    ``whole`` has all notes in full, and ``all_rows`` if the table lacks some.

    If they do not fit, the second largest part of the bill goes first. Then notes but changes and prices are shortened
    to two lines, the last first. Then the largest part goes, and all are shortened, that on prices after the others.
    Those on trust and on missing instances, and the verdict, follow last, as half of them is of no use. If one line
    each is still too much, changes go: the rest of the report has them.
    """
    most = {text: min(limit, fmt.lines_of(text)) for text, limit in notes.items() if text}
    if sum(most.values()) > room:
        most = {text: lines for text, lines in most.items() if not text.startswith(LARGEST[1])}
    verdict = next((text for text in most if not text.startswith(MISSING)), "")
    last_cut = [text for text in most if text.startswith((TRUST, MISSING)) or text == verdict]
    last_cut.sort(key=lambda text: not text.startswith(TRUST))
    others = [text for text in reversed(most) if text not in last_cut]
    others.sort(key=lambda text: text.startswith(PRICES))
    changes = [text for text in others if text.startswith(CHANGE)]
    cuts = (
        *((2, text) for text in others if not text.startswith((CHANGE, PRICES))),
        *((0, text) for text in others if text.startswith(LARGEST)),
        *product((2,), changes),
        *product((2, 1), others),
        *product((2, 1), last_cut),
        *product((0,), changes),
    )
    for least, text in cuts:
        while most[text] > least and sum(most.values()) > room:
            most[text] -= 1
    whole = replace(table, rows=all_rows or table.rows, notes=tuple(filter(None, notes)))
    return replace(
        table, notes=tuple(fmt.shortened(text, limit) for text, limit in most.items() if limit), whole=whole
    )
