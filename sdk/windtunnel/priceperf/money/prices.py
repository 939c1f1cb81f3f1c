"""The price book: the prices of an hour, each with the date from which it holds and its source (`prices.csv`).

Every price has a status:

- ``published``: AWS printed it,
- ``derived``: computed from another price by a named rule,
- ``seen``: read in a third party's copy of AWS's list,
- ``fetched``: AWS's Price List API returned it, on the given day,
- ``assumed``: the on-demand price less a discount that the user states; not a price of AWS,
- ``stated``: given by the user.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib.resources import files
from typing import Any, Literal, cast

from ..errors import InvalidInput, PriceUnknown, quoted
from ..instances import instance_types
from .offerings import (
    CLAIMS,
    HOSTING_ON_DEMAND,
    OFFERINGS,
    TRAINING_ON_DEMAND,
    Discount,
    Offering,
    name_for,
    offering_of,
)

Status = Literal["published", "derived", "seen", "fetched", "assumed", "stated"]
LEAST_USD, MOST_USD = 1e-6, 1e9
"""Limits of an hour's price, far beyond any real one, so that costs stay finite."""
HOME_REGION = "us-east-1"
"""The region whose prices are used if none is named."""


@dataclass(frozen=True)
class Price:
    """The price of one instance for one hour, in US dollars, valid from ``effective_from`` on.

    ``fetched_on``: the day on which AWS returned it, for fetched prices. ``until``: the day on which it ends by its own
    source; it counts all the same until a newer one is known, and reports name the day.
    """

    instance_type: str
    usd_per_hour: float
    region: str
    offering: str
    effective_from: date
    status: Status
    source: str
    fetched_on: date | None = None
    until: date | None = None

    def __post_init__(self) -> None:
        """Check that the price is a number in the limits."""
        usd = self.usd_per_hour
        number = isinstance(usd, int | float) and not isinstance(usd, bool)
        if not (number and LEAST_USD <= usd <= MOST_USD):
            raise InvalidInput(
                f"price of {self.instance_type} must be above 0 ({LEAST_USD:g} to {MOST_USD:g}), not {quoted(usd)}"
            )

    @property
    def days(self) -> str:
        """The day from which it holds, as ``2025-06-01``; with its end, if that is known."""
        return f"{self.effective_from}{'' if self.until is None else f' to {self.until}'}"

    @classmethod
    def stated(cls, instance_type: str, usd_per_hour: float, day: date) -> Price:
        """A price given by the user, in force from ``day`` on."""
        offering = offering_of(instance_type)
        return cls(instance_type, usd_per_hour, "as given", offering, day, "stated", "stated by the user")


def _built_in() -> tuple[Price, ...]:
    text = files(__package__).joinpath("prices.csv").read_text(encoding="utf-8")
    return tuple(
        Price(
            line["instance_type"],
            float(line["usd_per_hour"]),
            line["region"],
            line["offering"],
            date.fromisoformat(line["effective_from"]),
            cast("Status", line["status"]),
            line["source"],
            until=date.fromisoformat(line["until"]) if line["until"] else None,
        )
        for line in csv.DictReader(text.splitlines())
    )


BUILT_IN: tuple[Price, ...] = _built_in()
"""The lines of `prices.csv`: prices of SageMaker training for names with ``ml.``, of EC2 for others. Add none with a
future date: the newest price counts if no day is named.
"""


class PriceBook:
    """Dated prices. Immutable. A lookup finds the price in force on a day: the latest one that began before it.

    Args:
        prices: the entries of the book (default: the built-in ones).
        as_of: the day whose prices count if a lookup names no day (default: the newest price counts).
        discount: an assumed discount on every SageMaker training price, unless on-demand is asked for by name.
        bought_as: the offering that every lookup uses, instead of the one that an instance's name stands for.
    """

    def __init__(
        self,
        prices: Iterable[Price] = BUILT_IN,
        *,
        as_of: date | None = None,
        discount: Discount | None = None,
        bought_as: Offering | None = None,
    ) -> None:
        self._prices = tuple(sorted(prices, key=_order))
        self._by_name: dict[str, list[Price]] = {}
        for price in self._prices:
            self._by_name.setdefault(price.instance_type, []).append(price)
        self._found: dict[tuple[object, ...], Price | str] = {}  # or why there is none
        self._as_of = as_of
        self._discount = discount
        self._bought_as = bought_as

    @property
    def prices(self) -> tuple[Price, ...]:
        """All entries, sorted by instance type and date, without any assumed discount."""
        return self._prices

    @property
    def as_of(self) -> date | None:
        """The only day whose prices this book uses; None: all its days, the newest price if a lookup names no day."""
        return self._as_of

    @property
    def newest_fetch(self) -> date | None:
        """The last day on which a price was fetched from AWS; None: none was fetched."""
        return max((price.fetched_on for price in self._prices if price.fetched_on), default=None)

    def adding(self, prices: Iterable[Price]) -> PriceBook:
        """This book with more entries. They replace none: each is in force from its own date."""
        return self._with((*self._prices, *prices))

    def stating(self, usd_per_hour: Mapping[str, float], day: date) -> PriceBook:
        """This book with prices given by the user, in force from ``day`` on; they replace all its own of those names.

        ``usd_per_hour``: by instance name, with ``ml.`` for SageMaker training, without for EC2.

        Raises:
            UnknownInstance: names are not in the catalog.
            InvalidInput: a price is no number in the limits.
        """
        instance_types(usd_per_hour)  # raises if one is unknown
        own = [Price.stated(name, usd, day) for name, usd in usd_per_hour.items()]
        replaced = {(price.instance_type, price.offering) for price in own}
        kept = [price for price in self._prices if (price.instance_type, price.offering) not in replaced]
        return self._with([*kept, *own])

    def at(self, day: date) -> PriceBook:
        """This book as of one day: every lookup that names no day uses that day's prices."""
        return self._with(as_of=day)

    def assuming(self, offering: Offering, discount: float) -> PriceBook:
        """This book with SageMaker's training prices less a discount (0.3: 30 %), each with status ``assumed``.

        Raises:
            InvalidInput: the discount is not between 0 and AWS's claim for that offering, or there is no claim.
        """
        return self._with(discount=Discount(offering, discount))

    def buying(self, offering: Offering, discount: float | None = None) -> PriceBook:
        """This book, with the price of one offering for every name, with or without ``ml.``.

        Raises:
            InvalidInput: no offering; a savings plan or spot without a discount, or with one above AWS's claim; or a
                discount for an offering that has list prices.
        """
        if offering not in OFFERINGS:
            raise InvalidInput(f"an offering is one of {', '.join(OFFERINGS)}, not {quoted(offering)}")
        if offering in CLAIMS:
            if discount is None:
                raise InvalidInput(_no_list_price("an instance", offering))
            return self._with(bought_as=TRAINING_ON_DEMAND, discount=Discount(offering, discount))
        if discount is not None:
            self.assuming(offering, discount)  # raises: such an offering takes no discount
        return self._with(bought_as=offering, discount=None)

    def _with(self, prices: Iterable[Price] | None = None, **changed: Any) -> PriceBook:
        kept = {"as_of": self._as_of, "discount": self._discount, "bought_as": self._bought_as}
        return PriceBook(self._prices if prices is None else prices, **{**kept, **changed})

    def price(
        self,
        instance_type: str,
        on: date | None = None,
        region: str | None = None,
        offering: Offering | None = None,
    ) -> Price:
        """The price in force on a day, which is the latest one that began before it.

        A fetched price counts from the day of its fetch, even if AWS names an earlier date: it is in force then.

        Args:
            instance_type: with ``ml.`` for a SageMaker training price, without for an EC2 price.
            on: the day; None: the book's day (`as_of`), or else the newest price.
            region: None: us-east-1, and built-in prices of other regions, which stand in for it. Prices fetched
                for other regions count only if us-east-1 has none. The returned price names its region.
            offering: replaces the one that the name stands for (``ml.`` is added or removed as needed).

        Raises:
            PriceUnknown: no price of that instance is in force on that day.
            InvalidInput: a savings plan or spot that is not in the book: `assuming` takes a discount.
        """
        asked = instance_type, on, region, offering
        if asked not in self._found:
            try:
                self._found[asked] = self._find(*asked)
            except PriceUnknown as error:
                self._found[asked] = str(error)
        found = self._found[asked]
        if isinstance(found, str):
            raise PriceUnknown(found)
        return found

    def _find(
        self,
        instance_type: str,
        on: date | None,
        region: str | None,
        offering: Offering | None,
    ) -> Price:
        wanted = offering or self._bought_as or offering_of(instance_type)
        name = name_for(instance_type, wanted)
        if wanted in CLAIMS and not self._listed(name, wanted, region):
            raise InvalidInput(_no_list_price(name, wanted))
        found = self._lookup(name, wanted, on or self._as_of, region)
        if self._discount is not None and offering is None and wanted == TRAINING_ON_DEMAND:
            return _discounted(found, self._discount)
        return found

    def _listed(self, name: str, offering: Offering, region: str | None) -> list[Price]:
        prices = self._by_name.get(name, ())
        return [p for p in prices if p.offering == offering and region in (None, p.region)]

    def _lookup(self, name: str, offering: Offering, day: date | None, region: str | None) -> Price:
        known = self._listed(name, offering, region)
        if region is None:
            at_home = [p for p in known if p.region == HOME_REGION or p.fetched_on is None]
            known = at_home or known
        current = [p for p in known if day is None or p.effective_from <= day]
        if current:
            # Of equal ones the entry that was added last, which is the user's.
            return max(
                reversed(current), key=lambda p: (_counts_from(p, day), p.region == HOME_REGION, _fetched(p))
            )
        if known:
            first = min(p.effective_from for p in known)
            raise PriceUnknown(
                f"No price of {name} on {day}: the first in the book is of {first}. Ask for a later date."
            )
        where = "" if region is None else f" in {region}"
        names = [other for other in sorted(self._by_name) if self._listed(other, offering, region)]
        has = f" It has: {', '.join(names)}." if names else ""
        if offering == HOSTING_ON_DEMAND:
            has += f" Ask AWS for it: windtunnel prices refresh --hosting --instances {name}."
        raise PriceUnknown(f"No price of {name}, {offering},{where} in the book.{has}")

    def dates(self, instance_types: Sequence[str]) -> tuple[date, ...]:
        """The days on which the price of one of these instances changed and all of them had one, oldest first.

        A book as of one day gives only that day, or none if a price is missing.
        """
        listed = [
            name if self._bought_as is None else name_for(name, self._bought_as) for name in instance_types
        ]
        entries = [price for name in listed for price in self._by_name.get(name, ())]
        days = {day for price in entries for day in (price.effective_from, price.fetched_on) if day}
        result: list[date] = []
        last: tuple[float, ...] = ()
        for day in [self._as_of] if self._as_of else sorted(days):
            try:
                row = tuple(self.price(name, day).usd_per_hour for name in instance_types)
            except PriceUnknown:
                continue
            if row != last:
                last = row
                result.append(day)
        return tuple(result)


def _no_list_price(name: str, offering: Offering) -> str:
    claim = CLAIMS[offering]
    return (
        f"no price of {name} as {offering} in the book. AWS's words are {claim.words!r}, "
        f"which is no price: state a discount below on-demand, at most {claim.up_to}"
    )


def _order(price: Price) -> tuple[str, str, date, str, date]:
    return price.instance_type, price.offering, price.effective_from, price.region, _fetched(price)


def _fetched(price: Price) -> date:
    return price.fetched_on or date.min


def _counts_from(price: Price, day: date | None) -> date:
    """The date from which a price counts: the day of its fetch; on days before it, the date that AWS names."""
    if price.fetched_on is not None and (day is None or price.fetched_on <= day):
        return max(price.effective_from, price.fetched_on)
    return price.effective_from


def _discounted(price: Price, discount: Discount) -> Price:
    return replace(
        price,
        usd_per_hour=price.usd_per_hour * (1 - discount.part),
        offering=discount.offering,
        status="assumed",
        source=f"{discount.basis}; on-demand ${price.usd_per_hour:g}, {price.status}: {price.source}",
    )
