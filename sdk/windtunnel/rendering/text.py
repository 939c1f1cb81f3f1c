"""Draws a document in a terminal, with rich. Imported only when something is printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from windtunnel.rendering.document import Document, Kind, Row, Section

_COLOURS: dict[Kind, str] = {"measured": "green", "modelled": "yellow", "published": "cyan", "text": "blue"}
_STYLES = {"detail": "dim", "total": "bold", "group": "bold"}
_GAP = 2
"""Blanks between two columns."""
_SEVERITIES = {"error": "bold red", "warning": "bold yellow"}
"""The severities with which a note may begin, and their styles."""


def renderables(document: Document, *, full: bool = False) -> Iterator[RenderableType]:
    """The parts of the report, in order: its first screen, if it has one, or all of it if ``full``."""
    whole = tuple(section.whole or section for section in document.sections)
    document = replace(document, sections=whole, more="") if full else document.first_screen
    body: list[RenderableType] = [Text(document.subtitle, style="dim")] if document.subtitle else []
    body += [Text(line, style="bold") for line in document.headline]
    yield Panel(Group(*body), title=Text(document.title), title_align="left", padding=(0, 1))
    for section in document.sections:
        yield Padding(_section(section), (1, 1, 0, 1))
    if document.more:
        yield Padding(Text(document.more, style="dim"), (0, 1))


def as_text(document: Document, width: int = 100, *, full: bool = False) -> str:
    """The report as plain text of at most ``width`` columns; see `renderables`."""
    console = Console(width=width, no_color=True, force_terminal=False, force_jupyter=False, highlight=False)
    with console.capture() as capture:
        console.print(*renderables(document, full=full), sep="\n")
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def _section(section: Section) -> RenderableType:
    title = Text(section.title.upper(), style=f"bold {_COLOURS[section.kind]}")
    if section.subtitle:
        title.append(f"   {section.subtitle}", style="not bold dim")
    parts: list[RenderableType] = [title]
    if section.rows:
        parts.append(_Tables(section))
    parts += [_note(note, bold=section.first and not index) for index, note in enumerate(section.notes)]
    return Group(*parts)


@dataclass(frozen=True)
class _Tables:
    """A section's rows as a table; as several, each with some of the columns, if one would break words."""

    section: Section

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The tables, below each other."""
        section = self.section
        count = max(len(row.cells) for row in section.rows)
        cells = [[_label(row), *row.cells, *[""] * (count - len(row.cells))] for row in section.rows]
        names = [section.label_header, *section.columns, *[""] * (count - len(section.columns))]
        least = [_GAP + max(map(_least, column)) for column in zip(names, *cells, strict=True)]
        for tables in range(1, count + 1):
            most = -(-count // tables)
            parts = [range(begin, min(begin + most, count + 1)) for begin in range(1, count + 1, most)]
            if all(least[0] + sum(least[column] for column in part) <= options.max_width for part in parts):
                break
        else:
            parts, least = [range(1, count + 1)], [0] * len(least)
        for place, part in enumerate(parts):
            yield Padding(_table(section, names, cells, part, least), (min(place, 1), 0, 0, 0))


def _least(text: str) -> int:
    """The width in which no word breaks; what a text is indented by belongs to its first word."""
    return max(map(len, re.findall(r"^ *\S+|\S+", text)), default=0)


def _label(row: Row) -> str:
    return f"  {row.label}" if row.style == "detail" else row.label


def _table(
    section: Section,
    names: Sequence[str],
    cells: Sequence[Sequence[str]],
    columns: Iterable[int],
    least: Sequence[int],
) -> Table:
    """``least``: the width of each column, gap included, below which a word would break; 0: it may."""
    titled, shown = bool(section.columns), [*columns]
    table = Table(box=None, show_header=titled, padding=(0, _GAP, 0, 0), header_style="bold")
    for column in (0, *shown):
        table.add_column(
            names[column],
            justify="right" if titled and column else "left",
            no_wrap=not (titled or column),
            overflow="fold",
            min_width=max(0, least[column] - _GAP),
        )
    for row, texts in zip(section.rows, cells, strict=True):
        table.add_row(*(Text(texts[column]) for column in (0, *shown)), style=_STYLES.get(row.style))
    return table


def _note(note: str, *, bold: bool) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column()
    text, word = Text(note, style="bold" if bold else ""), note.partition(":")[0]
    text.stylize(_SEVERITIES.get(word, ""), 0, len(word))
    grid.add_row("·", text)
    return grid
