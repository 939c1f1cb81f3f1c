"""Predicted against published throughput, and the error of each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windtunnel.priceperf import CALIBRATIONS
from windtunnel.priceperf.calibration.accuracy import RowCheck, Validation
from windtunnel.priceperf.calibration.calibrations import VERSION_SPREAD
from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.rendering import format as fmt
from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.plots.style import FONT_SIZE, Theme, frame, plain, written_out

GOAL = 0.10
"""Half the width of the outer band: the error that the model aims at."""
_MOST_ROWS = 200  # most rows in the error panel: more would be a table, and there is one
_BEYOND_PERCENT = 40.0  # the axis ends here and says so, as errors of a file's rows may be of any size


def validation_charts(validation: Validation) -> tuple[Chart, ...]:
    """A scatter of all rows and the error of each; none when no row has both figures."""
    rows = [row for row in validation.rows if row.left_out is not None]
    if not rows:
        return ()
    summary = "; ".join(
        f"{CALIBRATIONS[item.calibration].label}: {fmt.many(item.left_out.rows, 'row')}, off by "
        f"{100 * item.left_out.mean:.1f} % on average, "
        f"{100 * item.left_out.largest:.1f} % at most"
        for item in validation.summaries
    )
    worst = sorted(rows, key=lambda row: -abs(row.left_out or 0.0))[:_MOST_ROWS]
    shown = [row for row in rows if row in worst] if len(rows) > _MOST_ROWS else rows
    most = f" Shown are the {_MOST_ROWS} largest errors of {len(rows):,}." if len(rows) > _MOST_ROWS else ""
    return (
        Chart(
            kind="published",
            title="Predicted against published throughput",
            caption=(
                "Each row predicted with constants fitted without it. Whiskers: its "
                f"{fmt.percent(COVERAGE)} interval. Inner band: the ±{fmt.percent(VERSION_SPREAD)} by which the same "
                f"configuration moves between Neuron versions. Outer band: ±{fmt.percent(GOAL)}."
            ),
            words=f"Modelled throughput against the published one, left out. {summary}.",
            size_in=(6.4, 6.0),
            draw=lambda target, theme: _scatter(target, theme, rows),
        ),
        Chart(
            kind="errors",
            title="Error of each row",
            caption=(
                "Plus: predicted faster than published. Large mark: constants fitted without the row; cross: without "
                "its whole family of models; small dot: the constants as shipped. Bands as above."
                f"{most}"
            ),
            words=f"Errors of the modelled throughput, row by row; the tables have the figures. {summary}.",
            size_in=(8.0, 1.7 + 0.17 * len(shown)),
            draw=lambda target, theme: _errors(target, theme, shown),
        ),
    )


def predicted(row: RowCheck) -> float:
    """The throughput predicted by constants that were fitted without the row, in sequences per second."""
    if row.published is None or row.left_out is None:
        raise ValueError(f"{row.config} has no left-out prediction")
    return row.published * (1 + row.left_out)


def _scatter(target: Any, theme: Theme, rows: Sequence[RowCheck]) -> None:
    axes = target.add_subplot()
    values = [value for row in rows for value in (row.published or 0.0, predicted(row))]
    ends = (min(values) / 1.8, max(values) * 1.8)
    for share, colour in ((GOAL, theme.band), (VERSION_SPREAD, theme.grid)):
        axes.fill_between(ends, [x * (1 - share) for x in ends], [x * (1 + share) for x in ends],
                          facecolor=colour, linewidth=0, label=f"±{share * 100:g} %")  # fmt: skip
    axes.plot(ends, ends, color=theme.muted, linewidth=0.9, linestyle="--", label="as published")
    for index, (key, calibration) in enumerate(CALIBRATIONS.items()):
        found = [row for row in rows if row.calibration == key]
        if not found:
            continue
        x, y = [row.published for row in found], [predicted(row) for row in found]
        # The interval's ends are factors of the prediction; the left-out prediction has the same factors.
        low = [value * (1 - _ratio(row.low, row)) for value, row in zip(y, found, strict=True)]
        high = [value * (_ratio(row.high, row) - 1) for value, row in zip(y, found, strict=True)]
        axes.errorbar(x, y, yerr=[low, high], fmt="none", color=theme.muted, elinewidth=0.8, zorder=2)
        axes.plot(x, y, linestyle="none", markersize=6, label=f"{calibration.label}, {fmt.many(len(found), 'row')}",
                  zorder=3, **theme.marks(index))  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    written_out(axes.xaxis)
    written_out(axes.yaxis)
    axes.set_aspect("equal")
    axes.set_xlabel("published, sequences per second")
    axes.set_ylabel("modelled, sequences per second")
    axes.set_title("Modelled against published throughput, each row left out", loc="left")
    axes.legend(loc="upper left", fontsize=FONT_SIZE - 0.5)
    frame(axes, theme, "both")


def _ratio(end: float | None, row: RowCheck) -> float:
    return 1.0 if end is None or not row.predicted else end / row.predicted


def _errors(target: Any, theme: Theme, rows: Sequence[RowCheck]) -> None:
    axes = target.add_subplot()
    keys = [key for key in CALIBRATIONS if any(row.calibration == key for row in rows)]
    ordered = [row for key in keys for row in rows if row.calibration == key]
    axes.axvspan(-100 * GOAL, 100 * GOAL, color=theme.band, linewidth=0)
    axes.axvspan(-100 * VERSION_SPREAD, 100 * VERSION_SPREAD, color=theme.grid, linewidth=0)
    axes.axvline(0, color=theme.muted, linewidth=0.9, linestyle="--")
    for index, (key, calibration) in enumerate(CALIBRATIONS.items()):
        at = [position for position, row in enumerate(ordered) if row.calibration == key]
        if not at:
            continue
        found = [ordered[position] for position in at]
        axes.plot([_percent(row.family_left_out) for row in found], at, linestyle="none", marker="x",
                  markersize=5, color=theme.ink, label="family of models left out" if key == keys[-1]
                  else "_", zorder=2)  # fmt: skip
        axes.plot([_percent(row.left_out) for row in found], at, linestyle="none", markersize=6,
                  label=f"{calibration.label}, row left out", zorder=3, **theme.marks(index))  # fmt: skip
        axes.plot([_percent(row.error) for row in found], at, linestyle="none", marker=".", markersize=4,
                  color=theme.ink, label="as shipped" if key == keys[-1] else "_", zorder=4)  # fmt: skip
        if index and at[0]:
            axes.axhline(at[0] - 0.5, color=theme.muted, linewidth=0.8)
    axes.set_yticks(range(len(ordered)), [plain(row.config) for row in ordered])
    axes.set_ylim(len(ordered) - 0.4, -0.6)
    widest = max([100 * GOAL, *(abs(_percent(row.left_out)) for row in ordered),
                  *(abs(_percent(row.family_left_out)) for row in ordered)])  # fmt: skip
    axes.set_xlim(-widest * 1.1, widest * 1.1)
    beyond = "; beyond ±40 % drawn at the edge" if widest >= _BEYOND_PERCENT else ""
    axes.set_xlabel(f"error of the modelled throughput, % of the published one{beyond}")
    axes.set_title("Error of each row", loc="left", pad=38)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=FONT_SIZE - 0.5, borderaxespad=0.2,
                borderpad=0, handletextpad=0.3)  # fmt: skip
    frame(axes, theme, "x")
    axes.tick_params(axis="y", labelsize=FONT_SIZE - 2, length=0)


def _percent(share: float | None) -> float:
    return max(-_BEYOND_PERCENT, min(_BEYOND_PERCENT, 100 * (share or 0.0)))
