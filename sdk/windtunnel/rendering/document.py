"""What a report says, independent of how it is drawn: sections of aligned rows, and notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    """A titled table, or (without rows) titled notes. ``kind`` keeps measured and modelled apart."""

    title: str
    kind: Kind
    subtitle: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()
    label_header: str = ""


@dataclass(frozen=True)
class Document:
    """A whole report, in reading order. ``headline``: its result in a sentence or two."""

    title: str
    subtitle: str
    headline: tuple[str, ...]
    sections: tuple[Section, ...]
