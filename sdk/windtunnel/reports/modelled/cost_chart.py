"""What the job is modelled to cost: a bar for each instance, precision and price date, with its interval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from windtunnel.priceperf import Comparison, Cost, Estimate
from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.rendering import format as fmt
from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.plots.style import (
    FONT_SIZE,
    TITLE,
    Theme,
    axis_end,
    frame,
    plain,
    room_for,
    two_lines,
    whisker,
    written_out,
)
from windtunnel.reports.modelled.labels import caveats, label

_DATES = 3  # price dates drawn, the newest; the table has all
_AXIS_IN = 5.3  # inches of the width beside labels and margins
_GAP = 0.9  # space between the bars of two price dates, in bars


@dataclass(frozen=True)
class _Bar:
    on: date
    label: str
    cost: Cost
    series: int


def cost_chart(comparison: Comparison, job: str) -> Chart:
    """A bar for every estimate at each price date, with the other precisions of the GPU script."""
    bars = tuple(_bars(comparison))
    dates = len({bar.on for bar in bars})
    words = "; ".join(f"{bar.label} at prices of {bar.on}: {_amount(bar.cost)}" for bar in bars)
    return Chart(
        kind="cost",
        title=f"Modelled cost of {job}",
        caption=(
            f"Whiskers: the {fmt.percent(COVERAGE)} interval of the modelled steps together with the low "
            "and high end of the assumed fixed costs; an arrow: the interval goes on. Below each "
            f"instance: its price of an hour and the day from which it is valid.{_left_out(comparison)}"
        ),
        words=f"Modelled cost: {words}." if words else "No instance has a price.",
        size_in=(8.0, 1.4 + 0.5 * len(bars) + 0.45 * dates),
        draw=lambda target, theme: _draw(target, theme, bars, job, caveats(comparison.estimates)),
    )


def _newest(comparison: Comparison) -> tuple[tuple[date, tuple[Cost | None, ...]], ...]:
    return tuple(sorted(comparison.costs, key=lambda row: row[0])[-_DATES:])


def _bars(comparison: Comparison) -> Iterator[_Bar]:
    for on, costs in _newest(comparison):
        series = 0
        for shown, cost in zip(comparison.estimates, costs, strict=True):
            others = [item for item in comparison.alternatives if _same(item, shown)]
            for item in (shown, *others):
                if cost is not None:
                    yield _Bar(on, f"{label(item)}, {item.precision.name}", item.cost(cost.price), series)
                series += 1


def _left_out(comparison: Comparison) -> str:
    """In words, which instances and price dates have no bar."""
    names = [
        label(item)
        for index, item in enumerate(comparison.estimates)
        if all(costs[index] is None for _, costs in comparison.costs)
    ]
    text = f" No price is known of {' and '.join(names)}, so there is no bar." if names else ""
    older = len(comparison.costs) - len(_newest(comparison))
    return f"{text} In the table only: {fmt.many(older, 'older date')} of prices." if older else text


def _same(item: Estimate, shown: Estimate) -> bool:
    return (item.name, item.instance_count) == (shown.name, shown.instance_count)


def _draw(target: Any, theme: Theme, bars: tuple[_Bar, ...], job: str, warned: tuple[str, ...]) -> None:
    axes = target.add_subplot()
    position, previous = 0.0, None
    limit = axis_end([bar.cost.usd for bar in bars], [bar.cost.high_usd for bar in bars])
    for bar in bars:
        if bar.on != previous:
            position += _GAP if previous else 0.0
            axes.annotate(
                f"At prices of {bar.on}", (0, position - 0.55), (4, 0), textcoords="offset points",
                va="bottom", fontweight="bold", fontsize=FONT_SIZE, color=theme.muted,
            )  # fmt: skip
            previous = bar.on
        _draw_bar(axes, position, bar, theme, limit)
        price = bar.cost.price
        since = f"{fmt.price(price.usd_per_hour)} an hour since {price.effective_from}"
        two_lines(axes, position, bar.label, since)
        position += 1
    axes.set_yticks([])
    axes.set_ylim(position - 0.4, -1.0)
    ends = [room_for(_amount(bar.cost), min(bar.cost.high_usd, limit), _AXIS_IN) for bar in bars]
    axes.set_xlim(0, max(ends, default=1.0))
    written_out(axes.xaxis)
    axes.set_xlabel("modelled cost of the job, US dollars")
    target.suptitle(f"Modelled cost of {plain(job)}", x=0.01, ha="left", **TITLE)
    frame(axes, theme, "x")
    if warned:
        target.supxlabel("\n".join(warned), fontsize=FONT_SIZE - 0.5, color=theme.ink)


def _draw_bar(axes: Any, position: float, bar: _Bar, theme: Theme, limit: float) -> None:
    cost = bar.cost
    axes.barh(position, cost.usd, height=0.62, **theme.fill(bar.series))
    whisker(axes, theme, position, (cost.low_usd, cost.usd, cost.high_usd), limit)
    axes.annotate(plain(_amount(cost)), (min(cost.high_usd, limit), position), (9, 0),
                  textcoords="offset points", va="center")  # fmt: skip


def _amount(cost: Cost) -> str:
    return fmt.dollars_within(cost.usd, cost.low_usd, cost.high_usd)
