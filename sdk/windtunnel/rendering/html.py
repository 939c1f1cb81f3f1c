"""A document as one piece of HTML for notebooks: escaped, self-contained, for light and dark pages."""

from __future__ import annotations

from html import escape

from windtunnel.rendering.document import Document, Row, Section

_STYLE = """
.wt{font:14px/1.5 system-ui,sans-serif;max-width:62rem;color:inherit}
.wt h2{font-size:1.25em;margin:0 0 .1em}.wt .sub{opacity:.7;font-weight:normal}
.wt .head{font-weight:600;margin:.8em 0;padding:.2em .9em;border-left:4px solid #d08700}
.wt section{margin:1.3em 0}
.wt h3{font-size:1em;margin:0 0 .4em}
.wt .tag{display:inline-block;padding:.05em .6em;margin-right:.6em;border-radius:3px}
.wt .tag{color:#fff;font-size:.85em}
.wt .measured .tag{background:#1a7f37}.wt .modelled .tag{background:#9a6700}
.wt .published .tag{background:#0969da}.wt .text .tag{background:#57606a}
.wt table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0;border:0}
.wt th,.wt td{padding:.15em 0 .15em 1.6em;text-align:right;vertical-align:top;background:none;border:0}
.wt th:first-child,.wt td:first-child{padding-left:0;text-align:left}
.wt .pairs td{text-align:left}
.wt thead th{border-bottom:1px solid #8888;white-space:pre-line}
.wt tr.detail td{opacity:.75}.wt tr.detail td:first-child{padding-left:1.2em}
.wt tr.total td,.wt tr.group td{font-weight:600}.wt tr.total td{border-top:1px solid #8884}
.wt tr.group td{padding-top:.7em}
.wt ul{margin:.5em 0 0;padding-left:1.2em}.wt li{margin:.15em 0}
"""


def as_html(document: Document) -> str:
    """A ``<div>`` with its own style sheet; every text in it is escaped."""
    parts = [f"<style>{_STYLE}</style>", '<div class="wt">', f"<h2>{escape(document.title)}</h2>"]
    if document.subtitle:
        parts.append(f'<div class="sub">{escape(document.subtitle)}</div>')
    if document.headline:
        parts.append(f'<div class="head">{"<br>".join(map(escape, document.headline))}</div>')
    parts += [_section(section) for section in document.sections]
    return "\n".join([*parts, "</div>"])


def _section(section: Section) -> str:
    subtitle = f'<span class="sub">{escape(section.subtitle)}</span>' if section.subtitle else ""
    parts = [
        f'<section class="{section.kind}"><h3><span class="tag">{escape(section.title)}</span>{subtitle}</h3>'
    ]
    if section.rows:
        parts.append(_table(section))
    if section.notes:
        parts.append("<ul>" + "".join(f"<li>{escape(note)}</li>" for note in section.notes) + "</ul>")
    return "\n".join([*parts, "</section>"])


def _table(section: Section) -> str:
    width = max((len(row.cells) for row in section.rows), default=0)
    head = ""
    if section.columns:
        cells = "".join(f"<th>{escape(name)}</th>" for name in (section.label_header, *section.columns))
        head = f"<thead><tr>{cells}</tr></thead>"
    rows = "".join(_row(row, width) for row in section.rows)
    return f'<table class="{"grid" if section.columns else "pairs"}">{head}<tbody>{rows}</tbody></table>'


def _row(row: Row, width: int) -> str:
    cells = [row.label, *row.cells, *[""] * (width - len(row.cells))]
    return f'<tr class="{row.style}">' + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
