"""Draws a chart as SVG for a page. Its colours are the page's CSS variables, so it follows the page's theme."""

from __future__ import annotations

import io
import re
import warnings
from html import escape

from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.plots.style import THEMES, settings

_COLOURS = {colour: f"var(--wt-{role})" for role, colour in THEMES["light"].roles.items()}
_REM_PER_INCH = 6.75  # text of 9 points is as large as the page's


def inline_svg(chart: Chart, prefix: str) -> str:
    """An ``<svg>`` element that scales with the page.

    Args:
        chart: what to draw.
        prefix: prefix of the ids in it, different for each chart of a page.

    Raises:
        ImportError: matplotlib is missing.
    """
    buffer = io.StringIO()
    figure = chart.figure("light")
    from matplotlib import rc_context

    with rc_context(settings(THEMES["light"])), warnings.catch_warnings():
        # matplotlib's font may lack letters of a name; the browser draws the text with its own font.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r">\s+<", "><", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))
    text = re.sub(r"<[^>]+>", lambda tag: _page_tag(tag[0], prefix), text)
    text = text.replace("*{stroke", ".chart *{stroke", 1)  # matplotlib's style would apply to the whole page
    width, height = (f"{72 * side:g}" for side in chart.size_in)
    head = (
        f'<svg class="chart" style="max-width:{_REM_PER_INCH * chart.size_in[0]:g}rem" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(chart.words)}">'
    )
    return head + text[text.index(">") + 1 :].strip()


def _page_tag(tag: str, prefix: str) -> str:
    """Change a tag: prefixed ids, colours as the page's variables, and fonts for readers without matplotlib's."""
    tag = re.sub(r'\bid="', f'id="{prefix}-', tag)
    tag = re.sub(r'(href="|url\()#', rf"\g<1>#{prefix}-", tag).replace("xlink:href", "href")
    tag = re.sub(r"#[0-9a-f]{6}\b", lambda colour: _COLOURS.get(colour[0], colour[0]), tag)
    return tag.replace("'DejaVu Sans'", "'DejaVu Sans',Verdana,sans-serif")


def css_variables(theme: str) -> str:
    """The colours of a theme as CSS declarations."""
    return ";".join(f"--wt-{role}:{colour}" for role, colour in THEMES[theme].roles.items())
