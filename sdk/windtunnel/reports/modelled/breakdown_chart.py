"""Where the time goes: one step, and the billable time, as stacked bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windtunnel.priceperf import Comparison, Estimate
from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.rendering import format as fmt
from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.plots.style import (
    FONT_SIZE,
    TITLE,
    Theme,
    axis_end,
    by_rows,
    frame,
    room_for,
    two_lines,
    whisker,
    written_out,
)
from windtunnel.reports.modelled.labels import caveats, label

_AXIS_IN = 6.2  # inches of the width beside labels and margins
Parts = tuple[tuple[str, float], ...]
"""Names and seconds of the parts, in the order in which they are stacked."""


def step_parts(item: Estimate) -> Parts:
    """The parts of one step, in seconds; they add up to the step."""
    return tuple(item.step.parts.items())


def billable_parts(item: Estimate) -> Parts:
    """The parts of the billable time on one instance, in seconds, before rounding up to whole seconds."""
    fixed = tuple((cost.name, cost.seconds) for cost in item.fixed if cost.billed)
    return (("training steps", item.train_s), *fixed)


def breakdown_chart(comparison: Comparison) -> Chart:
    """Two panels with a bar for each instance: one step, and the billable time with its fixed costs."""
    estimates = comparison.estimates
    words = "; ".join(
        f"{label(item)}, {item.precision.name}: step of {fmt.modelled_seconds(item.step.total_s)} "
        f"({_said(step_parts(item))}), "
        f"billable {fmt.modelled_seconds(item.billable_s)} ({_said(billable_parts(item))})"
        for item in estimates
    )
    return Chart(
        kind="breakdown",
        title="Modelled time, part by part",
        caption=(
            f"Whiskers: the {fmt.percent(COVERAGE)} interval of a step, and of the billable time together "
            "with the low and high end of the assumed fixed costs; an arrow: the interval goes on. Steps "
            "on different instances may have different batches: see the table. "
            f"{' '.join(caveats(estimates))}"
        ),
        words=f"Modelled time: {words}.",
        size_in=(8.0, 3.2 + 0.9 * len(estimates)),
        draw=lambda target, theme: _draw(target, theme, estimates),
        after="Modelled",
    )


@dataclass(frozen=True)
class _Bar:
    """Seconds of one estimate: the parts, their sum as the report shows it, and its interval."""

    item: Estimate
    parts: Mapping[str, float]
    total_s: float
    interval_s: tuple[float, float]

    @property
    def figures(self) -> str:
        """The text beside the bar."""
        between = fmt.modelled_span(self.interval_s, self.total_s)
        return f"{fmt.modelled_seconds(self.total_s)} ({between})"


def _draw(target: Any, theme: Theme, estimates: Sequence[Estimate]) -> None:
    upper, lower = target.subfigures(2, 1)
    steps = [_Bar(e, dict(step_parts(e)), e.step.total_s, e.step_interval_s) for e in estimates]
    _panel(upper, theme, steps, columns=4)
    upper.suptitle("Modelled time of one training step", x=0.01, ha="left", **TITLE)
    bills = [_Bar(e, dict(billable_parts(e)), e.billable_s, e.billable_interval_s) for e in estimates]
    _panel(lower, theme, bills, columns=5)
    lower.suptitle("Modelled billable time of the job", x=0.01, ha="left", **TITLE)


def _panel(target: Any, theme: Theme, bars: Sequence[_Bar], columns: int) -> None:
    axes = target.add_subplot()
    limit = axis_end([bar.total_s for bar in bars], [bar.interval_s[1] for bar in bars])
    scale, unit = _unit(limit)
    left = [0.0] * len(bars)
    names = [name for name in _names(bars) if any(bar.parts.get(name) for bar in bars)]
    for index, name in enumerate(names):
        widths = [bar.parts.get(name, 0.0) / scale for bar in bars]
        axes.barh(range(len(bars)), widths, left=left, height=0.5, label=name, **theme.fill(index))
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for position, bar in enumerate(bars):
        low, high = bar.interval_s
        # Below the bar: on it, the whisker would hide the parts.
        whisker(axes, theme, position + 0.37, (low / scale, bar.total_s / scale, high / scale), limit / scale)
        axes.annotate(
            bar.figures, (left[position], position), (5, 0), textcoords="offset points", va="center"
        )
        two_lines(axes, position, label(bar.item), bar.item.precision.name)
    axes.set_yticks([])
    axes.set_ylim(len(bars) - 0.4, -0.45)
    ends = [room_for(bar.figures, end, _AXIS_IN) for bar, end in zip(bars, left, strict=True)]
    axes.set_xlim(0, max(1.04 * limit / scale, *ends))
    axes.set_xlabel(unit)
    written_out(axes.xaxis)
    frame(axes, theme, "x")
    target.legend(loc="outside lower left", fontsize=FONT_SIZE - 0.5, handlelength=2.2, handleheight=1.1,
                  **by_rows(axes, columns))  # fmt: skip


def _names(bars: Sequence[_Bar]) -> list[str]:
    return list(dict.fromkeys(name for bar in bars for name in bar.parts))


def _unit(largest_s: float) -> tuple[float, str]:
    for scale, unit, limit in ((1e-3, "milliseconds", 1.0), (1.0, "seconds", fmt.HOURS_FROM_S)):
        if largest_s < limit:
            return scale, unit
    return 3600.0, "hours"


def _said(parts: Parts) -> str:
    return ", ".join(f"{name} {fmt.modelled_seconds(seconds)}" for name, seconds in parts if seconds)
