"""Draws a document in a terminal, with rich. Imported only when something is printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from windtunnel.rendering.document import Document, Kind, Row, Section

_COLOURS: dict[Kind, str] = {"measured": "green", "modelled": "yellow", "published": "cyan", "text": "blue"}
_STYLES = {"detail": "dim", "total": "bold", "group": "bold"}
_SEVERITIES = {"error": "bold red", "warning": "bold yellow"}
"""The severities with which a note may begin, and their styles."""


def renderables(document: Document, *, full: bool = False) -> Iterator[RenderableType]:
    """The parts of the report, in order: its first screen, if it has one, or all of it if ``full``."""
    document = replace(document, more="") if full else document.first_screen
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
        parts.append(_table(section))
    parts += [_note(note, bold=section.first and not index) for index, note in enumerate(section.notes)]
    return Group(*parts)


def _table(section: Section) -> Table:
    table = Table(box=None, show_header=bool(section.columns), padding=(0, 2, 0, 0), header_style="bold")
    width = max((len(row.cells) for row in section.rows), default=0)
    table.add_column(section.label_header, no_wrap=not section.columns, overflow="fold")
    for index in range(width):
        name = section.columns[index] if index < len(section.columns) else ""
        table.add_column(name, justify="right" if section.columns else "left", overflow="fold")
    for row in section.rows:
        table.add_row(*_cells(row, width), style=_STYLES.get(row.style))
    return table


def _cells(row: Row, width: int) -> list[Text]:
    label = f"  {row.label}" if row.style == "detail" else row.label
    return [
        Text(label),
        *(Text(cell) for cell in row.cells),
        *(Text("") for _ in range(width - len(row.cells))),
    ]


def _note(note: str, *, bold: bool) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column()
    text, word = Text(note, style="bold" if bold else ""), note.partition(":")[0]
    text.stylize(_SEVERITIES.get(word, ""), 0, len(word))
    grid.add_row("·", text)
    return grid
