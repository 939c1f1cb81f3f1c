"""Untrusted text for a page. Escaping is not enough: text may be invisible, reorder its neighbours or be too long."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from markupsafe import escape

MOST_CHARACTERS = 10_000
Row = TypeVar("Row")

# Control characters except tab and newline, separators, lone surrogates, and marks that change the text's direction.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\uffff]"
)


def visible(text: str, most: int | None = MOST_CHARACTERS) -> str:
    r"""The text with invisible characters written out as ``\x1b``, cut after ``most`` characters (None: not cut)."""
    cut = text if most is None or len(text) <= most else text[:most]
    shown = _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), cut)
    return shown if len(cut) == len(text) else f"{shown} … ({len(text) - len(cut):,} more characters)"


def room_of(*texts: str, most: int | None = MOST_CHARACTERS) -> int:
    """The bytes that texts take in a page after `visible` and escaping."""
    return sum(len(escape(visible(text, most)).encode()) for text in texts)


def fitting(rows: Iterable[Row], room: int, room_of_row: Callable[[Row], int]) -> list[Row]:
    """The first rows that fit into ``room`` together; at least one. Does not iterate further than needed."""
    kept: list[Row] = []
    for row in rows:
        room -= room_of_row(row)
        if room < 0 and kept:
            break
        kept.append(row)
    return kept
