"""Text that others chose, for a page: escaping alone lets it hide, turn what stands beside it, and fill the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from markupsafe import escape

MOST_CHARACTERS = 10_000
Row = TypeVar("Row")

# Controls but for tab and newline, separators, lone surrogates, and what turns the direction of the text around it.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\uffff]"
)


def visible(text: str, most: int | None = MOST_CHARACTERS) -> str:
    r"""The text with what cannot be seen written out as ``\x1b``, cut after ``most`` characters (None: whole)."""
    cut = text if most is None or len(text) <= most else text[:most]
    shown = _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), cut)
    return shown if len(cut) == len(text) else f"{shown} … ({len(text) - len(cut):,} more characters)"


def room_of(*texts: str, most: int | None = MOST_CHARACTERS) -> int:
    """Bytes that texts take in a page: written out, cut and escaped."""
    return sum(len(escape(visible(text, most)).encode()) for text in texts)


def fitting(rows: Iterable[Row], room: int, room_of_row: Callable[[Row], int]) -> list[Row]:
    """As many of the first rows as have room together; at least one. Takes no more of them than that."""
    kept: list[Row] = []
    for row in rows:
        room -= room_of_row(row)
        if room < 0 and kept:
            break
        kept.append(row)
    return kept
