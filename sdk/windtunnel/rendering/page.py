"""Draws a document as one HTML file with its charts inside, which loads nothing from elsewhere.

The charts' colours are CSS variables, so that one SVG fits light pages, dark pages and paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from windtunnel._version import __version__
from windtunnel.rendering.document import Document
from windtunnel.rendering.html import STYLE, opening, section_html
from windtunnel.rendering.plots.chart import MISSING, Chart, available
from windtunnel.rendering.plots.style import FAINT_RULE
from windtunnel.rendering.plots.svg import css_variables, inline_svg

_STYLE = """
body{margin:0;background:var(--wt-background);color:var(--wt-ink)}
.page{box-sizing:border-box;margin:0 auto;padding:1.2rem}
.page .title{font-size:1.5em;overflow-wrap:anywhere}
.page .name{font-size:1.05em}
.page .head{font-weight:500}.page .head .lead{font-weight:600}
.page figure{margin:1.3em 0}
.page figcaption{font-size:.92em;max-width:50rem}
.page svg.chart{display:block;width:100%;min-width:28rem;height:auto}
.page footer{margin-top:2em;padding-top:.6em;font-size:.9em}
@media (max-width:40rem){.wt th,.wt td{padding-left:.8em}.wt.page{font-size:13px;padding:.8rem}
.wt .grid tbody th{min-width:6.5em}.wt .grid.short td{white-space:normal}.wt .title{font-size:1.3em}}
@media print{
@page{size:A4;margin:14mm}
.wt.page{font-size:9pt;line-height:1.35;max-width:none;padding:0}
.page .tag{color:inherit;background:none!important;border:1px solid;font-weight:600}
.page figure,.page table,.page tr,.page li,.page .head{break-inside:avoid}
.page thead{display:table-header-group}
.page .name{break-after:avoid}
.page .scroll{overflow:visible}
.wt.page .grid{font-size:8pt}
.wt.page th,.wt.page td{padding-top:.05em;padding-bottom:.05em;line-height:1.25}
.page svg.chart{min-width:0;max-height:235mm}
.page .sub,.page tr.detail>*{opacity:1}
}
"""
_STYLE += f".page footer{{border-top:1px solid {FAINT_RULE}}}\n"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # the browser then refuses to load anything


def as_page(document: Document, charts: Sequence[Chart] = ()) -> str:
    """The whole HTML text. Without matplotlib the charts are left out, and the page says how to get them."""
    themes = (
        f":root{{color-scheme:light dark;{css_variables('light')}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{css_variables('dark')}}}}}"
        f"@media print{{:root{{color-scheme:light;{css_variables('print')}}}}}"
    )
    drawn = {chart.kind: _figure(chart) for chart in charts} if available() else {}
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(document.title)}</title>",
        f"<style>{themes}{STYLE}{_STYLE}</style>",
        "</head>",
        "<body>",
        '<main class="wt page">',
        f'<h1 class="title">{escape(document.title)}</h1>',
        *opening(document),
    ]
    if charts and not drawn:
        parts.append(f"<p>{escape(MISSING[0].upper() + MISSING[1:])}</p>")
    places = {section.title for section in document.sections}
    for first in (True, False):
        for section in (section for section in document.sections if section.first is first):
            parts.append(section_html(section, "h2"))
            parts += [drawn[chart.kind] for chart in charts if chart.after == section.title and drawn]
        if first:
            parts += [drawn[chart.kind] for chart in charts if chart.after not in places and drawn]
    parts.append(
        f"<footer>Windtunnel {escape(__version__)}. Measured: ran on this machine or was billed. Modelled: "
        "estimated, with its interval.</footer>"
    )
    return "\n".join([*parts, "</main>", "</body>", "</html>", ""])


def _figure(chart: Chart) -> str:
    return (
        f'<figure><div class="scroll">{inline_svg(chart, chart.kind)}</div>'
        f"<figcaption><strong>{escape(chart.title)}.</strong> {escape(chart.caption.strip())}</figcaption></figure>"
    )
