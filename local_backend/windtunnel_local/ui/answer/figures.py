"""The report's figures as bars and lines. Only positions on an axis are computed here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from windtunnel.priceperf import Cost, Estimate, Scaling
from windtunnel.rendering import format as fmt
from windtunnel.reports.job.report import PricePerformance
from windtunnel.reports.modelled.answer import longest_s
from windtunnel.reports.modelled.labels import label, place
from windtunnel_local.ui.charts.by_count_chart import Line, Point, by_count_chart, legend_key
from windtunnel_local.ui.charts.interval_bar import Interval, axis_end, interval_bar


@dataclass(frozen=True)
class Bar:
    """A row: an instance, its figure as text, a second figure (``more``), and the bar; empty without a figure."""

    name: str
    figure: str
    more: str
    bar: Markup


@dataclass(frozen=True)
class Bars:
    """A table of bars on one axis. ``columns``: the headings of the figure and of the second figure."""

    title: str
    columns: tuple[str, str]
    rows: tuple[Bar, ...]
    note: str


def bars(report: PricePerformance) -> list[Bars]:
    """Costs, times and break-even prices of a report; empty if nothing is modelled."""
    shown = report.screen
    if report.comparison is None or shown is None:
        return []
    estimates = report.comparison.estimates
    listed = [(estimates[index], shown.costs[index], index) for index in shown.order]
    winner = None if shown.answer is None else shown.answer.winner
    found = [_times(listed)]
    if shown.on is not None:
        found = [_costs(listed, winner, str(shown.on)), *found, *_break_evens(report)]
    return found


def _costs(listed: Sequence[tuple[Estimate, Cost | None, int]], winner: int | None, on: str) -> Bars:
    ends = axis_end(Interval(c.usd, c.low_usd, c.high_usd) for _, c, _ in listed if c is not None)
    rows = []
    for item, cost, index in listed:
        name = f"{label(item)}, {item.precision.name}"
        if cost is None:
            rows.append(Bar(name, "no price", "", Markup("")))
            continue
        drawn = interval_bar(Interval(cost.usd, cost.low_usd, cost.high_usd), ends, best=index == winner)
        figure = _usd(cost)
        price = (
            f"{fmt.price(cost.price.usd_per_hour)} an hour, {cost.price.status}, {cost.price.effective_from}"
        )
        rows.append(Bar(name, figure if item.fits else f"{figure}, does not fit", price, drawn))
    return Bars(f"Cost of the job at prices of {on}", ("cost (80 % interval)", "price"), tuple(rows), "")


def _times(listed: Sequence[tuple[Estimate, Cost | None, int]]) -> Bars:
    ends = axis_end(Interval(item.billable_s, *item.billable_interval_s) for item, _, _ in listed)
    longest = longest_s(item for item, _, _ in listed)
    rows = [
        Bar(
            f"{label(item)}, {item.precision.name}",
            fmt.seconds_within(item.billable_s, item.billable_interval_s, longest),
            fmt.seconds_within(item.step.total_s, item.step_interval_s),
            interval_bar(Interval(item.billable_s, *item.billable_interval_s), ends),
        )
        for item, _, _ in listed
    ]
    return Bars("Billable time of an instance", ("time (80 % interval)", "one step"), tuple(rows), "")


def _break_evens(report: PricePerformance) -> Iterable[Bars]:
    """Break-even prices of the instances that compete; none if there is only one."""
    shown, comparison = report.screen, report.comparison
    if shown is None or shown.answer is None or comparison is None:
        return
    decided, rows = shown.answer.decided, []
    found = [
        (comparison.estimates[i], even, cost)
        for i, (even, cost) in enumerate(zip(decided.break_evens, decided.costs, strict=True))
        if even is not None and cost is not None
    ]
    intervals = [
        Interval(e.usd_per_hour, e.low_usd_per_hour, e.high_usd_per_hour, c.price.usd_per_hour)
        for _, e, c in found
    ]
    ends = axis_end(intervals)
    for (item, even, cost), interval in zip(found, intervals, strict=True):
        span = fmt.interval(fmt.dollars(even.low_usd_per_hour), fmt.dollars(even.high_usd_per_hour))
        now = f"{fmt.cents(cost.price.usd_per_hour)}; against {place(comparison.estimates[even.against])}"
        figure = f"{fmt.dollars(even.usd_per_hour)} ({span})"
        rows.append(Bar(label(item), figure, now, interval_bar(interval, ends, kind="point")))
    if rows:
        note = "The price of an hour at which it costs as much as the cheapest, or the cheapest as the next. "
        note += "Thick: the price now. Thin, with its interval: where it turns."
        yield Bars("Break-even price of an hour", ("break-even (80 % interval)", "now"), tuple(rows), note)


@dataclass(frozen=True)
class Scaled:
    """Charts of instance types on growing numbers of instances, and a legend entry for each line."""

    charts: tuple[tuple[str, Markup], ...]
    keys: tuple[tuple[Markup, str], ...]


def scaled(tables: Sequence[Scaling]) -> Scaled:
    """Throughput and cost by number of instances. An instance type on which the job fits nowhere has no line."""
    running = [(place, table) for place, table in enumerate(tables) if table.base is not None]
    speeds = _lines(running, _speeds)
    costs = _lines(running, _dollars)
    drawn = (
        (
            "Throughput, samples a second",
            by_count_chart("Modelled throughput", "samples a second", speeds, key="speed"),
        ),
        ("Cost of the job, US dollars", by_count_chart("Modelled cost", "US dollars", costs, key="cost")),
    )
    return Scaled(
        tuple(pair for pair in drawn if pair[1]),
        tuple((legend_key(line.colour), line.name) for line in speeds),
    )


def _lines(tables: Sequence[tuple[int, Scaling]], points: Callable[[Scaling], list[Point]]) -> list[Line]:
    return [
        Line(f"{table.name.removeprefix('ml.')}, {table.precision.name}", points(table), place)
        for place, table in tables
    ]


def _speeds(table: Scaling) -> list[Point]:
    found = []
    for row in table.rows:
        if row.estimate is not None:
            speed, (low, high) = row.estimate.samples_per_s, row.estimate.step_interval_s
            step = row.estimate.step.total_s
            words = f"on {row.instances}: {fmt.significant(speed)} samples a second"
            found.append(Point(row.instances, speed, speed * step / high, speed * step / low, words))
    return found


def _dollars(table: Scaling) -> list[Point]:
    return [
        Point(row.instances, cost.usd, cost.low_usd, cost.high_usd, f"on {row.instances}: {_usd(cost)}")
        for row in table.rows
        if (cost := row.cost) is not None
    ]


def _usd(cost: Cost) -> str:
    return f"{fmt.dollars(cost.usd)} ({fmt.interval(fmt.dollars(cost.low_usd), fmt.dollars(cost.high_usd))})"
