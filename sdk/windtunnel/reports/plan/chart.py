"""Time against cost of all plans, with the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.priceperf.money.plan import Plan, Plans
from windtunnel.rendering import format as fmt
from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.plots.style import FONT_SIZE, TITLE, Theme, by_rows, frame, log_ticks, plain
from windtunnel.reports.modelled.labels import place
from windtunnel.reports.plan import labels

_POINTS = 200
"""Plans drawn of each instance type, the cheapest first: more would be a cloud of marks, and a large file."""


def plan_charts(found: Plans, after: str) -> tuple[Chart, ...]:
    """``pareto``: time against cost; no chart where nothing has a price. ``after``: see `Chart`."""
    if all(plan.cost is None for plan in found.plans):
        return ()
    front = "; ".join(f"{labels.sentence(plan)}" for plan in found.pareto) or "no plan keeps the limits"
    return (
        Chart(
            kind="pareto",
            title="Modelled time and cost of each plan",
            caption=(
                "Each mark is a split of a cluster that fits the memory. The line joins those that no other beats in "
                f"both; whiskers: their {fmt.percent(COVERAGE)} interval. Dashed: deadline and budget. Both axes are "
                "logarithmic."
            ),
            words=f"Modelled time and cost of each plan. On the front: {front}.",
            size_in=(8.0, 4.6),
            draw=lambda target, theme: _draw(target, theme, found),
            after=after,
        ),
    )


def _draw(target: Any, theme: Theme, found: Plans) -> None:
    axes = target.subplots()
    by_place: dict[str, list[Plan]] = {}
    for plan in found.plans:
        if plan.cost is not None:
            by_place.setdefault(place(plan.estimate), []).append(plan)
    for index, (name, plans) in enumerate(by_place.items()):
        shown = [(plan.hours, plan.cost.usd) for plan in plans[:_POINTS] if plan.cost]
        axes.plot(*zip(*shown, strict=True), linestyle="none", markersize=4.5, alpha=0.75, label=name, zorder=2,
                  **theme.marks(index))  # fmt: skip
    _front(axes, theme, found.pareto)
    _limits(axes, theme, found)
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("modelled, hours from the request to the model")
    axes.set_ylabel("modelled, US dollars")
    axes.minorticks_off()
    log_ticks(axes.xaxis)
    log_ticks(axes.yaxis)
    frame(axes, theme, "both")
    target.suptitle("Modelled time and cost of each plan", x=0.01, ha="left", **TITLE)
    target.legend(loc="outside lower left", fontsize=FONT_SIZE - 0.5, **by_rows(axes, 3))


def _limits(axes: Any, theme: Theme, found: Plans) -> None:
    line = {"linestyle": "--", "linewidth": 1, "color": theme.muted, "zorder": 1}
    small = {"fontsize": FONT_SIZE - 1, "color": theme.ink}
    if found.deadline_hours is not None:
        axes.axvline(found.deadline_hours, **line)
        axes.text(found.deadline_hours, 1.01, labels.limits(found.deadline_hours, None), ha="center", va="bottom",
                  transform=axes.get_xaxis_transform(), **small)  # fmt: skip
    if found.budget_usd is not None:
        axes.axhline(found.budget_usd, **line)
        axes.text(1.01, found.budget_usd, plain(labels.limits(None, found.budget_usd)), ha="left", va="center",
                  transform=axes.get_yaxis_transform(), **small)  # fmt: skip


def _front(axes: Any, theme: Theme, front: Sequence[Plan]) -> None:
    points = [(plan, plan.cost) for plan in front if plan.cost is not None]
    if not points:
        return
    hours, usd = [plan.hours for plan, _ in points], [cost.usd for _, cost in points]
    across = [
        [plan.hours - plan.hours_interval[0] for plan, _ in points],
        [plan.hours_interval[1] - plan.hours for plan, _ in points],
    ]
    up = [[cost.usd - cost.low_usd for _, cost in points], [cost.high_usd - cost.usd for _, cost in points]]
    axes.errorbar(hours, usd, xerr=across, yerr=up, fmt="none", color=theme.ink, elinewidth=0.8, capsize=2,
                  zorder=3)  # fmt: skip
    axes.plot(hours, usd, linestyle="-", linewidth=1.3, color=theme.ink, marker="o", markersize=8,
              markerfacecolor="none", label="Pareto front", zorder=4)  # fmt: skip
