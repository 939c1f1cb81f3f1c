"""Instances without a price for the chosen offering (on demand, ...): what they cost by other offerings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from windtunnel.priceperf import Cost, Estimate, Offering, PriceBook, PriceUnknown
from windtunnel.priceperf.money.offerings import LISTED
from windtunnel.rendering import format as fmt
from windtunnel.reports.job.report import PricePerformance
from windtunnel.reports.modelled.labels import label
from windtunnel_local.ui.answer.choice import Choice


@dataclass(frozen=True)
class Way:
    """One offering (way to buy an hour), with the job's cost and the price as text."""

    offering: Offering
    cost: str
    price: str


@dataclass(frozen=True)
class Unpriced:
    """An instance without a price for the chosen offering. ``ways``: the offerings for which it has one."""

    name: str
    ways: tuple[Way, ...]


def unpriced(report: PricePerformance, choice: Choice) -> list[Unpriced]:
    """The instances of a report with a modelled time but no cost, in the report's order."""
    comparison, shown = report.comparison, report.screen
    if comparison is None or shown is None:
        return []
    without = [comparison.estimates[index] for index in shown.order if shown.costs[index] is None]
    return [Unpriced(label(item), tuple(_ways(item, report.prices, choice.on))) for item in without]


def _ways(item: Estimate, book: PriceBook, on: date | None) -> Iterator[Way]:
    for offering in LISTED:
        cost = _cost(item, book, offering, on)
        if cost is not None:
            span = fmt.interval(fmt.dollars(cost.low_usd), fmt.dollars(cost.high_usd))
            price = cost.price
            words = f"{fmt.cents(price.usd_per_hour)} an hour, {price.region} {price.days}"
            yield Way(offering, f"{fmt.dollars(cost.usd)} ({span})", words)


def _cost(item: Estimate, book: PriceBook, offering: Offering, on: date | None) -> Cost | None:
    try:
        return item.cost(book.price(item.instance.name, on, offering=offering))
    except PriceUnknown:
        return None
