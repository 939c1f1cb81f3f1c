"""What an endpoint costs on AWS: its instances by the hour and by the day. Storage and data are not in it."""

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
"""More than a century."""

Fleet = Sequence[tuple[str, int]]
"""Instance types and how many of each."""


@dataclass(frozen=True)
class EndpointCost:
    """US dollars of all instances together; None where a price is unknown. ``basis``: of which day, or why not."""

    usd_per_hour: float | None
    basis: str

    @property
    def usd_per_day(self) -> float | None:
        """Of 24 hours."""
        return None if self.usd_per_hour is None else self.usd_per_hour * HOURS_A_DAY

    def words(self) -> str:
        """``$0.204 an hour, $4.90 a day while it runs (...)``, or that no price is known."""
        if self.usd_per_hour is None or self.usd_per_day is None:
            return self.basis
        return f"{fmt.price(self.usd_per_hour)} an hour, ${self.usd_per_day:,.2f} a day while it runs ({self.basis})"


def endpoint_cost(fleet: Fleet, region: str | None, book: PriceBook | None = None) -> EndpointCost:
    """What these instances cost. Reads the fetched prices of the home.

    Args:
        fleet: the instances; none (a serverless endpoint) have no price.
        region: None: the local backend's, for which us-east-1's prices stand.
        book: replaces the built-in prices and the fetched ones.
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
    """Whole seconds that an endpoint may live by both limits; None: there is none.

    Raises:
        ConfigurationError: a limit that is no number above 0, one that leaves no second, or no known price.
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
    """What becomes of a limit: here it is kept, on AWS nobody keeps it."""
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
    """One line for who has just asked for an endpoint: what it costs until it is deleted."""
    instances = " + ".join(f"{count} x {kind}" for kind, count in fleet)
    end = "delete_endpoint() ends it."
    if local:
        return f"Endpoint {name}, {instances}: here it costs nothing; on AWS {cost.words()}. {end}"
    return f"Endpoint {name}, {instances}: {cost.words()}; {end}"
