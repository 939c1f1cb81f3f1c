"""What a report says, independent of how it is drawn: sections of aligned rows, and notes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from windtunnel.rendering.format import shortened

Kind = Literal["measured", "modelled", "published", "text"]
Style = Literal["normal", "detail", "total", "group"]


@dataclass(frozen=True)
class Row:
    """A label and its cells. ``detail`` rows are indented parts, ``group`` rows only headings."""

    label: str
    cells: tuple[str, ...] = ()
    style: Style = "normal"


@dataclass(frozen=True)
class Section:
    """A titled table, or (without rows) titled notes. ``kind`` keeps measured and modelled apart.

    ``first``: it is on the first screen, where the terminal shows no more; its first note is what matters most.
    Such sections come before all others.
    """

    title: str
    kind: Kind
    subtitle: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    label_header: str = ""
    first: bool = False


@dataclass(frozen=True)
class Document:
    """A whole report, in reading order. ``headline``: its result in a sentence or two.

    ``more``: how to see what the first screen leaves out.
    """

    title: str
    subtitle: str
    headline: tuple[str, ...]
    sections: tuple[Section, ...]
    more: str = ""

    @property
    def first_screen(self) -> Document:
        """The sections that are read first, and the headline's lines shortened; all where none is marked so."""
        first = tuple(section for section in self.sections if section.first)
        if not first:
            return replace(self, more="")
        return replace(self, headline=tuple(shortened(line, 2) for line in self.headline), sections=first)
