"""Cost bars with their intervals, with matplotlib (extra ``notebook``); imported only on demand."""

from __future__ import annotations

from typing import Any

from windtunnel.priceperf import Comparison, Cost
from windtunnel.rendering import format as fmt

_COLOURS = ("#2a78b5", "#d08700", "#7a5195", "#4f8f4f")


def cost_plot(comparison: Comparison, title: str) -> Any:
    """A matplotlib Figure: one bar an instance and price date, with the interval of each cost.

    Raises:
        ImportError: matplotlib is missing; the message names the extra.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot() needs matplotlib: pip install 'windtunnel[notebook]'") from error
    figure = Figure(figsize=(8, 0.9 + 0.75 * max(1, len(comparison.costs)) * len(comparison.estimates)))
    axes = figure.add_subplot()
    labels: list[str] = []
    for on, costs in comparison.costs:
        for index, cost in enumerate(costs):
            if cost is None:
                continue
            _bar(axes, len(labels), cost, _COLOURS[index % len(_COLOURS)])
            estimate = comparison.estimates[index]
            labels.append(f"{estimate.instance.name}, {estimate.precision.name}\nprices of {on}")
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, axes.get_xlim()[1] * 1.12)
    axes.set_xlabel("modelled cost, US dollars, with interval")
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.grid(visible=True, alpha=0.3)
    axes.set_axisbelow(True)
    figure.tight_layout()
    return figure


def _bar(axes: Any, position: int, cost: Cost, colour: str) -> None:
    axes.barh(position, cost.usd, height=0.55, color=colour, alpha=0.85)
    error = [[cost.usd - cost.low_usd], [cost.high_usd - cost.usd]]
    axes.errorbar(cost.usd, position, xerr=error, fmt="none", ecolor="#333333", capsize=4, linewidth=1.2)
    axes.annotate(
        fmt.dollars(cost.usd),
        (cost.high_usd, position),
        xytext=(6, 0),
        textcoords="offset points",
        va="center",
    )
