"""Draws a document as HTML: tables and notes, escaped. Notebooks show the result of `as_html`."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.plots.style import (
    DETAIL,
    FAINT_RULE,
    HEADLINE,
    RULE,
    SMALL_PRINT,
    TAG_INK,
    TAGS,
)

STYLE = """
.wt{font:14px/1.5 system-ui,sans-serif;max-width:62rem;color:inherit}
.wt .title{font-size:1.25em;font-weight:600;margin:0 0 .1em}.wt .sub{font-weight:normal}
.wt .head{font-weight:600;margin:.8em 0;padding:.2em .9em;border-left:4px solid}
.wt .head p{margin:.15em 0}
.wt section{margin:1.3em 0}
.wt .name{font-size:1em;margin:0 0 .4em}
.wt .tag{display:inline-block;padding:.05em .6em;margin-right:.6em;border-radius:3px}
.wt .tag{font-size:.85em}
.wt .scroll{overflow-x:auto}
.wt table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0;border:0}
.wt caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.wt th,.wt td{padding:.15em 0 .15em 1.6em;text-align:right;vertical-align:top;background:none;border:0}
.wt th:first-child,.wt td:first-child{padding-left:0;text-align:left}
.wt tbody th{font-weight:normal}
.wt .pairs td{text-align:left}.wt .pairs th,.wt .grid.short td{white-space:nowrap}
.wt thead th{white-space:pre-line}
.wt tr.detail th{padding-left:1.2em}
.wt tr.total>*,.wt tr.group>*{font-weight:600}
.wt tr.group>*{padding-top:.7em}
.wt .first li:first-child{font-weight:600}
.wt ul{margin:.5em 0 0;padding-left:1.2em}.wt li{margin:.15em 0;overflow-wrap:anywhere}
"""
STYLE += f".wt .head{{border-color:{HEADLINE}}}.wt .tag{{color:{TAG_INK}}}\n"
STYLE += f".wt .sub{{opacity:{SMALL_PRINT}}}.wt tr.detail>*{{opacity:{DETAIL}}}\n"
STYLE += (
    f".wt thead>*>*{{border-bottom:1px solid {RULE}}}.wt tr.total>*{{border-top:1px solid {FAINT_RULE}}}\n"
)
STYLE += "".join(f".wt .{kind} .tag{{background:{colour}}}\n" for kind, colour in TAGS.items())
_SHORT = 40  # characters of a cell that stays on one line, or two on a phone; no number is split
_UNBROKEN = str.maketrans({" ": "\N{NO-BREAK SPACE}"})


def as_html(document: Document) -> str:
    """A ``<div>`` with its own style sheet; all text in it is escaped."""
    parts = [
        f"<style>{STYLE}</style>",
        '<div class="wt">',
        f'<h2 class="title">{escape(document.title)}</h2>',
    ]
    parts += opening(document)
    parts += [section_html(section, "h3") for section in document.sections]
    return "\n".join([*parts, "</div>"])


def opening(document: Document) -> Iterator[str]:
    """The HTML of subtitle and headline."""
    if document.subtitle:
        yield f'<div class="sub">{escape(document.subtitle)}</div>'
    if document.headline:
        yield '<div class="head">'
        for line in document.headline:
            yield f'<p class="{"lead" if line.endswith(":") else "line"}">{_prose(line)}</p>'
        yield "</div>"


def _prose(text: str) -> str:
    """Escape the text, and keep a number and its percent sign on one line."""
    return escape(text).replace(" %", "&nbsp;%")


def section_html(section: Section, heading: str) -> str:
    """The HTML of one section. ``heading``: tag of its title, e.g. ``h3``."""
    section = section.whole or section
    subtitle = f'<span class="sub">{escape(section.subtitle)}</span>' if section.subtitle else ""
    parts = [
        f'<section class="{section.kind}{" first" if section.first else ""}">'
        f'<{heading} class="name"><span class="tag">{escape(section.title)}</span> {subtitle}</{heading}>'
    ]
    if section.rows:
        parts.append(_table(section))
    if section.notes:
        parts.append("<ul>" + "".join(f"<li>{_prose(note)}</li>" for note in section.notes) + "</ul>")
    return "\n".join([*parts, "</section>"])


def _table(section: Section) -> str:
    width = max((len(row.cells) for row in section.rows), default=0)
    head = ""
    if section.columns:
        names = (section.label_header, *section.columns)
        cells = "".join(f'<th scope="col">{escape(name)}</th>' if name else "<td></td>" for name in names)
        head = f"<thead><tr>{cells}</tr></thead>"
    kind = "grid" if section.columns else "pairs"
    if all(len(cell) <= _SHORT for row in section.rows for cell in row.cells):
        kind += " short"
    whole = kind == "grid short"
    body = "".join(_row(row, width, first=index == 0, whole=whole) for index, row in enumerate(section.rows))
    return (
        f'<div class="scroll"><table class="{kind}">'
        f"<caption>{escape(section.title)}</caption>{head}<tbody>{body}</tbody></table></div>"
    )


def _row(row: Row, width: int, *, first: bool, whole: bool) -> str:
    if row.style == "group":  # begins a <tbody> of its own with the rows after it
        start = "" if first else "</tbody><tbody>"
        return f'{start}<tr class="group"><th scope="rowgroup" colspan="{width + 1}">{escape(row.label)}</th></tr>'
    cells = [*row.cells, *[""] * (width - len(row.cells))]
    label = f'<th scope="row">{escape(row.label)}</th>' if row.label else "<td></td>"
    shown = "".join(f"<td>{_figure(cell) if whole else escape(cell)}</td>" for cell in cells)
    return f'<tr class="{row.style}">{label}{shown}</tr>'


def _figure(cell: str) -> str:
    """Escape a cell, and allow line breaks only before an interval and in its middle."""
    unbroken = escape(cell).translate(_UNBROKEN)
    for before in ("(", "to\N{NO-BREAK SPACE}"):
        unbroken = unbroken.replace(f"\N{NO-BREAK SPACE}{before}", f" {before}")
    return unbroken
