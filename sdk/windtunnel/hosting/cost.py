"""The cost of an endpoint's instances on AWS, by the hour and by the day, without storage and data transfer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from windtunnel.errors import ConfigurationError
from windtunnel.priceperf import PriceBook, PriceUnknown
from windtunnel.priceperf.money.billing import SECONDS_PER_HOUR
from windtunnel.priceperf.money.offerings import HOSTING_ON_DEMAND
from windtunnel.prices.cache import load
from windtunnel.rendering import format as fmt
from windtunnel.request import checks

HOURS_A_DAY = 24
MOST_HOURS = 1_000_000
"""The limit of max_hours, more than a century."""

Fleet = Sequence[tuple[str, int]]
"""Instance types, each with the number of instances."""


@dataclass(frozen=True)
class EndpointCost:
    """US dollars for all instances; None where a price is unknown. ``basis``: the price's day, or why it is unknown."""

    usd_per_hour: float | None
    basis: str

    @property
    def usd_per_day(self) -> float | None:
        """US dollars for 24 hours; None where a price is unknown."""
        return None if self.usd_per_hour is None else self.usd_per_hour * HOURS_A_DAY

    def words(self) -> str:
        """The cost in words: ``$0.204 an hour, $4.90 a day while it runs (...)``, or that no price is known."""
        if self.usd_per_hour is None or self.usd_per_day is None:
            return self.basis
        return f"{fmt.price(self.usd_per_hour)} an hour, ${self.usd_per_day:,.2f} a day while it runs ({self.basis})"


def endpoint_cost(fleet: Fleet, region: str | None, book: PriceBook | None = None) -> EndpointCost:
    """The cost of these instances. Reads the prices that were fetched into the home.

    Args:
        fleet: the instances; a serverless endpoint has none, and so no price.
        region: the AWS region; None: that of the local backend, with us-east-1's prices.
        book: prices to use instead of the built-in and the fetched ones.
    """
    book = book or load().book
    found = []
    for kind, _ in fleet:
        try:
            found.append(book.price(kind, date.today(), region, HOSTING_ON_DEMAND))
        except PriceUnknown:
            where = f" --region {region}" if region else ""
            return EndpointCost(
                None,
                f"a price that is not known here (windtunnel prices refresh --hosting --instances {kind}{where} "
                "asks AWS)",
            )
    if not found:
        return EndpointCost(None, "an amount that its configuration does not tell")
    total = sum(price.usd_per_hour * count for price, (_, count) in zip(found, fleet, strict=True))
    dated = {f"{price.status} price of {price.fetched_on or price.effective_from}" for price in found}
    return EndpointCost(total, f"{', '.join(sorted(dated))}, {found[0].region}")


def lifetime_s(cost: EndpointCost, max_cost: float | None, max_hours: float | None) -> int | None:
    """Whole seconds that an endpoint may live under both limits; None without a limit.

    Raises:
        ConfigurationError: a limit is no number above 0 or leaves less than a second, or the price is unknown.
    """
    checks.check_max_cost("max_cost", max_cost)
    if max_hours is not None and not (isinstance(max_hours, int | float) and 0 < max_hours < MOST_HOURS):
        raise ConfigurationError(f"max_hours={max_hours!r}: hours above 0 and below {MOST_HOURS:,}, e.g. 8.")
    left = [] if max_hours is None else [max_hours * SECONDS_PER_HOUR]
    if max_cost is not None:
        if cost.usd_per_hour is None:
            raise ConfigurationError(
                f"max_cost= needs a price, and the endpoint costs {cost.basis}. Or give max_hours=."
            )
        left.append(min(max_cost / cost.usd_per_hour, MOST_HOURS) * SECONDS_PER_HOUR)
    if left and min(left) < 1:
        raise ConfigurationError(
            f"max_cost={max_cost!r}, max_hours={max_hours!r} leave less than a second. Give more."
        )
    return math.floor(min(left)) if left else None


def limit_words(name: str, seconds: int, *, local: bool) -> str:
    """A sentence about a limit's effect: the local backend enforces it, on AWS nothing does."""
    hours = f"{seconds / SECONDS_PER_HOUR:,.2f} h"
    if local:
        return (
            f"It is deleted {hours} after its creation (max_cost=, max_hours=); then windtunnel endpoint-logs {name}"
            " says so."
        )
    return (
        f"AWS has no limit that ends an endpoint: {name} is billed until you delete it. max_cost=, max_hours= are"
        f" reached after {hours}: call delete_endpoint() before, or windtunnel rm --endpoint {name} --aws."
    )


def running_line(name: str, fleet: Fleet, cost: EndpointCost, *, local: bool) -> str:
    """One line that is printed before an endpoint is created: what it costs until it is deleted."""
    instances = " + ".join(f"{count} x {kind}" for kind, count in fleet)
    end = "delete_endpoint() ends it."
    if local:
        return f"Endpoint {name}, {instances}: here it costs nothing; on AWS {cost.words()}. {end}"
    return f"Endpoint {name}, {instances}: {cost.words()}; {end}"
