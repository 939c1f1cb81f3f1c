"""The content of a report, independent of how it is drawn: sections of aligned rows, and notes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from windtunnel.rendering.format import shortened

Kind = Literal["measured", "modelled", "published", "text"]
Style = Literal["normal", "detail", "total", "group"]


@dataclass(frozen=True)
class Row:
    """A label and its cells. Rows of style ``detail`` are indented parts, those of style ``group`` only headings."""

    label: str
    cells: tuple[str, ...] = ()
    style: Style = "normal"


@dataclass(frozen=True)
class Section:
    """A titled table, or (without rows) titled notes. ``kind`` keeps measured and modelled apart.

    ``first``: the section belongs to the first screen, all that a terminal shows unless more is asked for. Such
    sections come before all others, and the first note of each is its most important one. ``whole``: the section as it
    is where no terminal limits it, if it was cut to fit the first screen.
    """

    title: str
    kind: Kind
    subtitle: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    label_header: str = ""
    first: bool = False
    whole: Section | None = None


@dataclass(frozen=True)
class Document:
    """A whole report, in reading order. ``headline``: its result in a sentence or two.

    ``more``: a hint how to see the sections that the first screen leaves out. ``headline_lines``: the lines that each
    sentence of the headline may have on that screen.
    """

    title: str
    subtitle: str
    headline: tuple[str, ...]
    sections: tuple[Section, ...]
    more: str = ""
    headline_lines: int = 2

    @property
    def first_screen(self) -> Document:
        """The document with only its ``first`` sections and a shortened headline; unchanged if it has none."""
        first = tuple(section for section in self.sections if section.first)
        if not first:
            return replace(self, more="")
        headline = tuple(shortened(line, self.headline_lines) for line in self.headline)
        return replace(self, headline=headline, sections=first)
