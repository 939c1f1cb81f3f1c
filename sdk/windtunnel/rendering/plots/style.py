"""The style of charts, and all colours of pages: on white, on a dark page, and in black and white.

Colour is never the only difference: series also differ by hatch, marker and lightness. The palettes of ``light`` and
``dark`` start from Okabe and Ito's (Color Universal Design, 2008), darkened or lightened until each series has a
contrast of 3:1 and text one of 4.5:1 with the background (WCAG 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from windtunnel.priceperf.errors import InvalidInput
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Kind

ThemeName = Literal["light", "dark", "print"]

HATCHES = (
    "",
    "///",
    "xxx",
    "\\\\\\",
    "---",
    "|||",
    "+++",
    "//",
    "/-",
    "\\|",
)  # lines only: dots make large SVGs
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*", "<", ">")
FONT_SIZE = 9.0
_CHARACTER_IN = 0.083  # mean width of a digit or letter at FONT_SIZE, a little more than DejaVu's
_WIDEST = 3.5  # an axis of bars ends at most at 3.5 times the longest bar, even if an interval is longer
TITLE: Mapping[str, Any] = {"fontsize": FONT_SIZE + 1, "fontweight": "bold"}


@dataclass(frozen=True)
class Theme:
    """Colours as ``#rrggbb``. No two are alike, because in an SVG a colour is recognised by its value.

    ``edge``: outline and hatch of areas. ``series``: areas and lines, in order.
    """

    name: ThemeName
    background: str
    ink: str
    muted: str
    grid: str
    band: str
    edge: str
    series: tuple[str, ...]

    @property
    def roles(self) -> Mapping[str, str]:
        """Each colour by its use."""
        named = {role: getattr(self, role) for role in ("background", "ink", "muted", "grid", "band", "edge")}
        return {**named, **{f"series-{index}": colour for index, colour in enumerate(self.series)}}

    def fill(self, index: int) -> dict[str, Any]:
        """matplotlib's keyword arguments for the area of a series."""
        return {
            "facecolor": self.series[index % len(self.series)],
            "edgecolor": self.edge,
            "hatch": HATCHES[index % len(HATCHES)],
            "linewidth": 0.8,
        }

    def marks(self, index: int) -> dict[str, Any]:
        """matplotlib's keyword arguments for the markers of a series."""
        return {
            "marker": MARKERS[index % len(MARKERS)],
            "color": self.series[index % len(self.series)],
            "markeredgecolor": self.ink,
            "markeredgewidth": 0.6,
        }


THEMES: Mapping[str, Theme] = {
    theme.name: theme
    for theme in (
        Theme(
            "light", "#ffffff", "#1c2128", "#57606a", "#d5dae0", "#e9ecf0", "#fdfdfd",
            ("#0072b2", "#c4500a", "#00805d", "#9b4588", "#5f6b76", "#806600", "#2d87bd", "#a33a3a",
             "#3d4b7a", "#6b4a2b"),
        ),
        Theme(
            "dark", "#14181d", "#e6eaee", "#a3adb8", "#39424c", "#262d35", "#15191e",
            ("#56b4e9", "#f2a03d", "#35c79e", "#e193c4", "#b4bec8", "#e8d94a", "#93d2f5", "#f28e8e",
             "#a9b4f0", "#d9b38c"),
        ),
        Theme(
            "print", "#fffffe", "#000000", "#333333", "#c4c4c4", "#ececec", "#010101",
            ("#6e6e6e", "#ffffff", "#d9d9d9", "#f4f4f4", "#a8a8a8", "#e6e6e6", "#bdbdbd", "#8c8c8c",
             "#fafafa", "#cccccc"),
        ),
    )
}  # fmt: skip

HEADLINE, TAG_INK = "#d08700", "#ffffff"
TAGS: Mapping[Kind, str] = {
    "measured": "#1a7f37",
    "modelled": "#9a6700",
    "published": "#0969da",
    "text": "#57606a",
}
"""Colours of reports on any background: the line beside a headline, and section titles by the section's kind."""

SMALL_PRINT, DETAIL = 0.75, 0.8
"""Opacity of small print and of detail rows in reports."""
RULE, FAINT_RULE = "#8888", "#8885"
"""Colours of the lines in reports: below a table's head, and between its parts."""


def theme_named(name: str) -> Theme:
    """The theme of that name.

    Raises:
        InvalidInput: there is no such theme; the message lists all.
    """
    if name not in THEMES:
        raise InvalidInput(f"theme must be one of {', '.join(get_args(ThemeName))}, not {name!r}")
    return THEMES[name]


def settings(theme: Theme) -> Any:
    """matplotlib's settings while a chart is drawn, in place of the user's own."""
    return {
        "font.family": "DejaVu Sans",  # comes with matplotlib, so charts look the same everywhere
        "font.size": FONT_SIZE,
        "text.color": theme.ink,
        "axes.titlesize": FONT_SIZE + 1,
        "axes.titlecolor": theme.ink,
        "axes.titleweight": "bold",
        "axes.labelcolor": theme.ink,
        "axes.labelsize": FONT_SIZE,
        "axes.edgecolor": theme.muted,
        "axes.facecolor": theme.background,
        "figure.facecolor": theme.background,
        "figure.edgecolor": theme.background,
        "xtick.color": theme.ink,
        "ytick.color": theme.ink,
        "grid.color": theme.grid,
        "hatch.linewidth": 0.7,
        "legend.frameon": False,
        "legend.labelcolor": theme.ink,
        "svg.fonttype": "none",  # keeps text as text: small, searchable, can be read aloud
        "svg.hashsalt": "windtunnel",  # the same chart gives the same bytes
    }


def frame(axes: Any, theme: Theme, grid: Literal["x", "y", "both"]) -> None:
    """Draw two spines and a faint grid behind the data, and set the tick colours, for later ticks too."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, axis=grid, color=theme.grid, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", color=theme.muted, labelcolor=theme.ink, labelsize=FONT_SIZE - 0.5)


def written_out(axis: Any) -> None:
    """Show the axis's numbers without an exponent: 2,000,000."""
    axis.set_major_formatter(lambda value, _: fmt.given(value))


def log_ticks(axis: Any) -> None:
    """Set a logarithmic axis's ticks: more for a range below a factor of 10; numbers without an exponent."""
    from matplotlib.ticker import LogLocator

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 10 * low else (1, 1.5, 2, 3, 4, 5, 7)))
    written_out(axis)


def whisker(axes: Any, theme: Theme, position: float, ends: tuple[float, float, float], limit: float) -> None:
    """Draw a horizontal interval (low, middle, high). If it goes beyond ``limit``, an arrow there shows that."""
    low, middle, high = ends
    shown = [[max(0.0, middle - low)], [max(0.0, min(high, limit) - middle)]]
    # The wide one in the background's colour is a halo: over a hatch, the whisker alone could not be seen.
    for colour, width, cap in ((theme.background, 3.6, 5), (theme.ink, 1.3, 4)):
        axes.errorbar(middle, position, xerr=shown, fmt="none", color=colour, capsize=cap, capthick=width,
                      elinewidth=width)  # fmt: skip
    if high > limit:
        axes.plot([limit], [position], marker=">", markersize=8, color=theme.ink, clip_on=False, zorder=5)


def axis_end(bars: Sequence[float], highs: Sequence[float]) -> float:
    """The end of an axis of bars: beyond the longest interval, but at most `_WIDEST` times the longest bar."""
    longest = max(bars, default=1.0)
    return min(max([longest, *highs]), _WIDEST * longest) or 1.0


def room_for(text: str, position: float, axes_in: float) -> float:
    """The end that an axis from 0, ``axes_in`` inches long, needs so that a text to the right of ``position`` fits."""
    share = min(0.75, (_CHARACTER_IN * len(text) + 0.2) / axes_in)
    return position / (1 - share)


def two_lines(axes: Any, position: float, first: str, second: str) -> None:
    """Draw a bar's label left of the axis: ``first``, and below it, smaller, ``second``.

    As two texts: in an SVG, two lines of one text are aligned by their left ends, which only fit one font.
    """
    for text, rise, size in ((first, 1, FONT_SIZE), (second, -1, FONT_SIZE - 1)):
        axes.annotate(
            plain(text), (0, position), (-6, rise), xycoords=("axes fraction", "data"), ha="right",
            textcoords="offset points", va="bottom" if rise > 0 else "top", fontsize=size,
        )  # fmt: skip


def plain(text: str) -> str:
    """The text with its dollar signs escaped: matplotlib takes text between two of them as a formula."""
    return text.replace("$", r"\$")


def by_rows(target: Any, columns: int) -> dict[str, Any]:
    """Arguments for a legend whose entries read row by row; matplotlib fills it by columns."""
    handles, labels = target.get_legend_handles_labels()
    order = [index for column in range(columns) for index in range(column, len(labels), columns)]
    return {
        "handles": [handles[index] for index in order],
        "labels": [labels[index] for index in order],
        "ncols": columns,
    }
