"""Draws a document as GitHub-flavoured Markdown, for a comment on a pull request or a build's summary.

Source: https://github.github.com/gfm/ (tables, backslash escapes).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from windtunnel.rendering.document import Document, Row, Section

_MARKS = re.compile(r"[\\`*_\[\]<>|~&#]")
"""Characters that have a meaning in Markdown anywhere in a line; ``#`` because it can end a heading."""
_FIRST_MARK = re.compile(r"^(\d*)(?=[-+.)])")
"""The place before a character that would begin a heading or a list at the start of a line."""
_INDENT = "\N{EM SPACE}"


def as_markdown(document: Document, *, full: bool = False) -> str:
    """The report as Markdown: its first screen or, if ``full``, all of it. All text in it is escaped."""
    return "\n\n".join(_blocks(document if full else document.first_screen)) + "\n"


def _blocks(document: Document) -> Iterator[str]:
    yield f"## {_text(document.title)}"
    if document.subtitle:
        yield _line(document.subtitle)
    yield from map(_bold, document.headline)
    for section in (each.whole or each for each in document.sections):
        subtitle = f" · {_text(section.subtitle)}" if section.subtitle else ""
        yield f"### {_text(section.title)}{subtitle}"
        if section.rows:
            yield "\n".join(_table(section))
        if section.notes:
            first, *others = section.notes
            notes = [_bold(first) if section.first else _line(first), *map(_line, others)]
            yield "\n".join(f"- {note}" for note in notes)


def _table(section: Section) -> Iterator[str]:
    width = 1 + max(len(row.cells) for row in section.rows)
    yield _row([_text(section.label_header), *map(_text, section.columns)], width)
    yield _row([":--", *(["--:" if section.columns else ":--"] * (width - 1))], width)
    for row in section.rows:
        yield _row(_cells(row), width)


def _cells(row: Row) -> list[str]:
    if row.style in ("total", "group"):
        return [_bold(cell) for cell in (row.label, *row.cells)]
    indent = _INDENT if row.style == "detail" else ""
    return [indent + _text(row.label), *map(_text, row.cells)]


def _row(cells: Sequence[str], width: int) -> str:
    return f"| {' | '.join([*cells, *[''] * (width - len(cells))])} |"


def _bold(text: str) -> str:
    return f"**{_text(text)}**" if text.strip() else ""


def _line(text: str) -> str:
    return _FIRST_MARK.sub(r"\1\\", _text(text))


def _text(text: str) -> str:
    """The text, escaped and on one line."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))
