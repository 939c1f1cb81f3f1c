"""Throughput and cost of one job on more and more instances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

from windtunnel.priceperf import Cost, Estimate
from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.priceperf.money.scaling import Scaling, ScalingMode, ScalingRow
from windtunnel.rendering import format as fmt
from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.plots.style import FONT_SIZE, TITLE, Theme, by_rows, frame, log_ticks
from windtunnel.reports.modelled.labels import numbers

_MEANING = {
    "strong": "The global batch stays the same.",
    "weak": "Each worker keeps its samples, so the global batch grows.",
}
_APART = 0.035  # shift between series, as a part of x: their whiskers can be told apart


class PublishedPoint(NamedTuple):
    """A throughput that was published for the same job on so many instances. ``label``: the name of the mark."""

    mode: ScalingMode
    instances: int
    samples_per_s: float
    label: str


def scaling_charts(
    scalings: Sequence[Scaling], after: str = "", published: Sequence[PublishedPoint] = ()
) -> tuple[Chart, ...]:
    """One chart for each mode, ``strong`` and ``weak``: two panels, logarithmic axes, a line for each instance type.

    A mode in which the job runs nowhere has no chart. ``after``: see `Chart`. ``published``: marks beside the lines.
    """
    charts = []
    for mode in get_args(ScalingMode):
        found = [item for item in scalings if item.mode == mode and item.base is not None]
        if found:
            points = [point for point in published if point.mode == mode]
            charts.append(_chart(mode, found, after, points))
    return tuple(charts)


def _chart(
    mode: ScalingMode, scalings: Sequence[Scaling], after: str, published: Sequence[PublishedPoint]
) -> Chart:
    words = "; ".join(f"{_label(item)}: {_said(item)}" for item in scalings)
    dates = sorted({row.cost.price.effective_from for item in scalings for row in item.rows if row.cost})
    prices = f" Prices hold from {', '.join(map(str, dates))}." if dates else " No price is known."
    printed = " Published: as AWS printed it, of the batch named." if published else ""
    words += "".join(
        f"; published on {point.instances:,} ({point.label}): {point.samples_per_s:,.0f} samples/s"
        for point in published
    )
    return Chart(
        kind=mode,
        title=f"Modelled {mode} scaling",
        caption=(
            f"{_MEANING[mode]} Whiskers: the {fmt.percent(COVERAGE)} interval of the modelled steps, in the cost also "
            "the low and high end of the assumed fixed costs. Dotted: throughput that grows as the instances do, at "
            f"the same cost.{printed}{prices}{_missing(scalings)}{_warned(scalings)}"
        ),
        words=f"Modelled {mode} scaling. {words}.",
        size_in=(8.0, 4.2 + 0.2 * (len(scalings) // 3)),
        draw=lambda target, theme: _draw(target, theme, mode, scalings, published),
        after=after,
    )


def _draw(
    target: Any,
    theme: Theme,
    mode: ScalingMode,
    scalings: Sequence[Scaling],
    published: Sequence[PublishedPoint],
) -> None:
    left, right = target.subplots(1, 2)
    counts = sorted({row.instances for item in scalings for row in item.rows})
    for index, item in enumerate(scalings):
        rows = [(row, row.estimate) for row in _drawn(item) if row.estimate is not None]
        shift = 1 + _APART * (index - (len(scalings) - 1) / 2)
        speeds = [(row, estimate.samples_per_s, *_speeds(estimate)) for row, estimate in rows]
        costs = [(row, row.cost.usd, row.cost.low_usd, row.cost.high_usd) for row, _ in rows if row.cost]
        for axes, points, grows in ((left, speeds, True), (right, costs, False)):
            if points:
                _line(axes, theme, index, _label(item), points, shift)
                _ideal(axes, theme, points[0], counts[-1], grows=grows)
    for index, point in enumerate(published, len(scalings)):
        label = f"published, {point.label}"
        left.plot([point.instances], [point.samples_per_s], linestyle="", markersize=8, label=label, zorder=4,
                  **theme.marks(index))  # fmt: skip
    for axes, title, unit in (
        (left, "Throughput of the steps", "samples per second"),
        (right, "Cost of the job", "US dollars"),
    ):
        axes.set(xscale="log", yscale="log", xlim=(counts[0] / 1.3, counts[-1] * 1.3))
        axes.set_xticks(counts, [f"{count:,}" for count in counts])
        axes.minorticks_off()
        log_ticks(axes.yaxis)
        axes.set_xlabel("instances")
        axes.set_ylabel(f"modelled, {unit}")
        axes.set_title(title, loc="left", fontsize=FONT_SIZE)
        frame(axes, theme, "both")
    target.suptitle(f"Modelled {mode} scaling", x=0.01, ha="left", **TITLE)
    target.legend(loc="outside lower left", fontsize=FONT_SIZE - 0.5, **by_rows(left, 3))


def _drawn(item: Scaling) -> list[ScalingRow]:
    """The rows on which the job fits the memory; if it fits on none, all rows."""
    return [row for row in item.rows if row.fits or (item.base is not None and not item.base.fits)]


def _line(
    axes: Any,
    theme: Theme,
    index: int,
    label: str,
    points: Sequence[tuple[ScalingRow, float, float, float]],
    shift: float,
) -> None:
    x = [row.instances * shift for row, *_ in points]
    middle = [value for _, value, _, _ in points]
    ends = [
        [value - low for _, value, low, _ in points],
        [high - value for _, value, _, high in points],
    ]
    stroke, marks = _stroke(theme, index), theme.marks(index)
    axes.errorbar(x, middle, yerr=ends, fmt="none", color=stroke, elinewidth=0.9, capsize=2, zorder=2)
    dashes = ("-", "--", "-.", (0, (5, 1)))[index % 4]
    axes.plot(x, middle, linestyle=dashes, linewidth=1.2, markersize=6, label=label, zorder=3,
              **{**marks, "markerfacecolor": marks["color"], "color": stroke})  # fmt: skip


def _stroke(theme: Theme, index: int) -> str:
    """A line's colour; in print as dark as text, as pale greys would not be seen."""
    return theme.muted if theme.name == "print" else theme.series[index % len(theme.series)]


def _ideal(
    axes: Any, theme: Theme, first: tuple[ScalingRow, float, float, float], last: int, *, grows: bool
) -> None:
    row, value, *_ = first
    end = value * last / row.instances if grows else value
    axes.plot([row.instances, last], [value, end], linestyle=":", linewidth=1, color=theme.muted, zorder=1)


def _speeds(item: Estimate) -> tuple[float, float]:
    """Low and high end of the throughput: the slow step is the low one."""
    fast, slow = item.step_interval_s
    return item.global_batch / slow, item.global_batch / fast


def _label(item: Scaling) -> str:
    place = "" if item.name.startswith("ml.") else " on EC2"
    return f"{item.name.removeprefix('ml.')}{place}, {item.precision.name}"


def _said(item: Scaling) -> str:
    return ", ".join(
        f"on {row.instances:,} {fmt.significant(row.samples_per_s)} samples/s{_cost_said(row.cost)}"
        for row in item.rows
        if row.samples_per_s is not None
    )


def _cost_said(cost: Cost | None) -> str:
    return "" if cost is None else f" for {fmt.dollars(cost.usd)}"


def _missing(scalings: Sequence[Scaling]) -> str:
    parts = []
    for item in scalings:
        counts = [row.instances for row in item.rows if row.estimate is None]
        if counts:
            parts.append(f" {_label(item)} cannot run on {numbers(counts)}: no mark.")
    return "".join(parts)


def _warned(scalings: Sequence[Scaling]) -> str:
    """The warnings of the table's notes, with the numbers of instances that they hold for."""
    text = ""
    for item in scalings:
        rows = [row.estimate for row in item.rows if row.estimate is not None]
        outside = [f"{one.instance_count:,}" for one in rows if one.range_check.outside]
        large = [f"{one.instance_count:,}" for one in rows if not one.fits]
        own = [f"{one.instance_count:,}" for one in rows if one.correction]
        for what, counts in (
            ("is changed by YOUR CALIBRATION", own),
            ("is outside the calibrated range, interval widened,", outside),
            ("does not fit the memory", large),
        ):
            if counts:
                text += f" {_label(item)} {what} on {', '.join(counts)}."
    return text
