"""The price book: what an hour costs, since when, and how we know.

A price never travels without its date and status:

- ``published``: AWS printed it,
- ``derived``: computed from another price by a rule that is named,
- ``seen``: read in a third party's copy of AWS's list,
- ``fetched``: AWS's Price List API answered with it, on the day given,
- ``assumed``: on-demand less a discount that the user states; no price of AWS's,
- ``stated``: the user's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal

from ..errors import InvalidInput, PriceUnknown, quoted
from ..instances import instance_type
from .offerings import (
    CAPACITY_BLOCK,
    CLAIMS,
    EC2_ON_DEMAND,
    HOSTING_ON_DEMAND,
    TRAINING_ON_DEMAND,
    Discount,
    Offering,
    name_for,
    offering_of,
)

Status = Literal["published", "derived", "seen", "fetched", "assumed", "stated"]
LEAST_USD, MOST_USD = 1e-6, 1e9
"""Of an hour: far beyond any, so that costs stay in the range of numbers."""
HOME_REGION = "us-east-1"
"""Where prices are taken from when no region is named."""


@dataclass(frozen=True)
class Price:
    """Price of one instance for one hour, in US dollars, valid from ``effective_from`` on.

    ``fetched_on``: the day on which AWS answered with it, for what was fetched.
    """

    instance_type: str
    usd_per_hour: float
    region: str
    offering: str
    effective_from: date
    status: Status
    source: str
    fetched_on: date | None = None

    def __post_init__(self) -> None:
        """Refuse prices that are no prices."""
        usd = self.usd_per_hour
        number = isinstance(usd, int | float) and not isinstance(usd, bool)
        if not (number and LEAST_USD <= usd <= MOST_USD):
            raise InvalidInput(
                f"price of {self.instance_type} must be above 0 ({LEAST_USD:g} to {MOST_USD:g}), not {quoted(usd)}"
            )

    @classmethod
    def stated(cls, instance_type: str, usd_per_hour: float, day: date) -> Price:
        """A user's own, in force from a day on."""
        offering = offering_of(instance_type)
        return cls(instance_type, usd_per_hour, "as given", offering, day, "stated", "stated by the user")


_TRAINING = TRAINING_ON_DEMAND
_EC2 = EC2_ON_DEMAND
_BLOCK = CAPACITY_BLOCK
_BLOG = "AWS blog, price/performance table of trn1 against p4d"
_BLOG_P4D = f"{_BLOG}; 37.688 elsewhere"
_VANTAGE = "EC2 price list via Vantage data of 2025-11-30"
_VANTAGE_2XL = f"{_VANTAGE}; AWS's inference table uses 1.34"
_INF2_PAGE = (
    "AWS Neuron documentation, Inf2 inference performance of 2023-04-25, rounded; AWS's costs there use it"
)
_OLD_LIST = "EC2 price list before the reduction of June 2025"
_UPLIFT = "EC2 price x 1.15 (holds for trn1 and p4d; 1.2-1.25 for other families)"
_SEEN = (
    "third-party copy of the AWS Price List (Studio SKU); equals EC2 21.957642 x 1.15; "
    "the training SKU was not seen directly"
)

_BLOCKS = "a stored copy of AWS's Capacity Blocks page, whose rates hold until 2025-01-01; AWS changes them"
_GPU_BLOG = (
    "AWS Machine Learning Blog, Secure short-term GPU capacity for ML workloads with EC2 Capacity Blocks for ML and "
    "SageMaker training plans, in a stored copy of 2026-05-11"
)
_COPY = "a third party's copy of AWS's Capacity Blocks page: check it before use"

_P4D = date(2020, 11, 1)
_LAUNCH = date(2022, 10, 10)
_TRN1N = date(2023, 4, 1)
_INF2 = date(2023, 4, 25)
_REDUCTION = date(2025, 6, 1)
_AUTUMN_2024 = date(2024, 10, 1)
_MAY_2026 = date(2026, 5, 1)

BUILT_IN: tuple[Price, ...] = (
    Price("ml.trn1.2xlarge", 1.5453, "us-east-1", _TRAINING, _LAUNCH, "derived", _UPLIFT),
    Price("ml.trn1.32xlarge", 24.725, "us-east-1", _TRAINING, _LAUNCH, "published", _BLOG),
    Price("ml.trn1n.32xlarge", 28.497, "us-east-1", _TRAINING, _TRN1N, "derived", _UPLIFT),
    Price("ml.p4d.24xlarge", 37.69, "us-east-1", _TRAINING, _LAUNCH, "published", _BLOG_P4D),
    Price("ml.p4d.24xlarge", 25.251286, "us-west-2", _TRAINING, _REDUCTION, "seen", _SEEN),
    Price("trn1.2xlarge", 1.34375, "us-east-1", _EC2, _LAUNCH, "published", _VANTAGE_2XL),
    Price("trn1.32xlarge", 21.50, "us-east-1", _EC2, _LAUNCH, "published", _VANTAGE),
    Price("trn1n.32xlarge", 24.78, "us-east-1", _EC2, _TRN1N, "published", _VANTAGE),
    Price("inf2.xlarge", 0.758, "us-east-1", _EC2, _INF2, "published", _INF2_PAGE),
    Price("p4d.24xlarge", 32.7726, "us-east-1", _EC2, _P4D, "published", _OLD_LIST),
    Price("p4d.24xlarge", 21.957642, "us-east-1", _EC2, _REDUCTION, "published", f"{_VANTAGE} (-33.0 %)"),
    Price("p4d.24xlarge", 14.75, "us-east-2", _BLOCK, _AUTUMN_2024, "seen", _BLOCKS),
    Price("trn1.32xlarge", 15.49, "ap-southeast-4", _BLOCK, _AUTUMN_2024, "seen", _BLOCKS),
    Price("p5.48xlarge", 39.33, "us-east-1", _BLOCK, _AUTUMN_2024, "seen", _BLOCKS),
    Price("p5.48xlarge", 34.608, "us-east-1", _BLOCK, _MAY_2026, "published", _GPU_BLOG),
    Price("p5.48xlarge", 55.04, "us-east-1", _EC2, _MAY_2026, "published", _GPU_BLOG),
    Price("trn2.3xlarge", 2.235, "us-east-2", _BLOCK, _MAY_2026, "seen", _COPY),
    Price("trn2.48xlarge", 35.7608, "us-east-2", _BLOCK, _MAY_2026, "seen", _COPY),
)
"""``ml.`` names are SageMaker training prices, bare names EC2 prices. None of a day to come: the newest one counts
where no day is named.
"""


class PriceBook:
    """Dated prices. Immutable; lookups take the nearest earlier price.

    Args:
        prices: those of the book (default: the built-in ones).
        as_of: the day at whose prices everything is priced where no day is named (default: the newest).
        discount: an assumption that holds for every SageMaker training price, unless on-demand is asked for by name.
        bought_as: a way to buy the hour that holds instead of what an instance's name says.
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
        self._changed: dict[str, tuple[date, ...]] = {}
        self._found: dict[tuple[object, ...], Price | str] = {}  # or why there is none
        self._as_of = as_of
        self._discount = discount
        self._bought_as = bought_as

    @property
    def prices(self) -> tuple[Price, ...]:
        """All entries, by instance type and date, without any assumed discount."""
        return self._prices

    @property
    def as_of(self) -> date | None:
        """The day at whose prices this book prices; None: the newest, and each day of a change."""
        return self._as_of

    @property
    def newest_fetch(self) -> date | None:
        """The last day on which a price was fetched from AWS; None: never."""
        return max((price.fetched_on for price in self._prices if price.fetched_on), default=None)

    def adding(self, prices: Iterable[Price]) -> PriceBook:
        """This book and more entries. None is replaced: they count from their own dates."""
        return self._with((*self._prices, *prices))

    def stating(self, usd_per_hour: Mapping[str, float], day: date) -> PriceBook:
        """This book with a user's own prices in place of its own, in force from a day on.

        ``usd_per_hour``: by name, with ``ml.`` of SageMaker training, without of EC2.

        Raises:
            UnknownInstance: a name that is not in the catalog.
            InvalidInput: what is no price.
        """
        for name in usd_per_hour:
            instance_type(name)  # says what is wrong with it
        own = [Price.stated(name, usd, day) for name, usd in usd_per_hour.items()]
        replaced = {(price.instance_type, price.offering) for price in own}
        kept = [price for price in self._prices if (price.instance_type, price.offering) not in replaced]
        return self._with([*kept, *own])

    def at(self, day: date) -> PriceBook:
        """This book, as of one day: what ran at any time is priced at that day's prices."""
        return self._with(as_of=day)

    def assuming(self, offering: Offering, discount: float) -> PriceBook:
        """This book with SageMaker's prices less a discount (0.3: 30 %), each with status ``assumed``.

        Raises:
            InvalidInput: the discount is not between 0 and what AWS claims for that offering.
        """
        return self._with(discount=Discount(offering, discount))

    def buying(self, offering: Offering, discount: float | None = None) -> PriceBook:
        """This book, in which every name has the price of one offering, whatever the name says.

        Raises:
            InvalidInput: a savings plan or spot without a discount, or one above AWS's claim; or a discount on
                what has list prices.
        """
        if offering in CLAIMS:
            if discount is None:
                raise InvalidInput(_no_list_price("an instance", offering))
            return self._with(bought_as=TRAINING_ON_DEMAND, discount=Discount(offering, discount))
        if discount is not None:
            self.assuming(offering, discount)  # says that it takes none
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
        discount: float | None = None,
    ) -> Price:
        """The price in force on a day: the nearest earlier one. ``on=None``: the book's day, or the newest.

        What was fetched on a day counts on that day whatever the date from which AWS says it holds.

        Args:
            instance_type: with ``ml.`` a SageMaker training price, without an EC2 price.
            on: the day.
            region: None takes us-east-1's, and built-in prices of other regions that stand in for it; what
                was fetched elsewhere counts only where us-east-1 has nothing. The answer names the region.
            offering: decides instead of the name (``ml.`` is added or taken away).
            discount: of a savings plan or spot that is not in the book; 0.3 is 30 % below on-demand.

        Raises:
            PriceUnknown: no price of that instance is in force then.
            InvalidInput: a savings plan or spot without a discount, or one above AWS's claim.
        """
        asked = instance_type, on, region, offering, discount
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
        discount: float | None,
    ) -> Price:
        wanted = offering or self._bought_as or offering_of(instance_type)
        if discount is not None:
            Discount(wanted, discount)  # says what is wrong with it
        name = name_for(instance_type, wanted)
        day = on or self._as_of
        if wanted in CLAIMS and not self._listed(name, wanted, region):
            if discount is None:
                raise InvalidInput(_no_list_price(name, wanted))
            plain = self._lookup(name, TRAINING_ON_DEMAND, day, region)
            return _discounted(plain, Discount(wanted, discount))
        found = self._lookup(name, wanted, day, region)
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
            # Of equals the one that came later: the user's own.
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
        """The days at which a price of these instances changed and all of them had one, oldest first.

        A book as of one day has that day alone, or none.
        """
        days = (
            {self._as_of} if self._as_of else {day for name in instance_types for day in self._changes(name)}
        )
        changed: list[tuple[float, ...]] = []
        result = []
        for day in sorted(days):
            row = self._row(instance_types, day)
            if row and row not in changed[-1:]:
                changed.append(row)
                result.append(day)
        return tuple(result)

    def _row(self, names: Sequence[str], day: date) -> tuple[float, ...]:
        """The prices of a day; empty where one is missing."""
        try:
            return tuple(self.price(name, day).usd_per_hour for name in names)
        except PriceUnknown:
            return ()

    def _changes(self, name: str) -> tuple[date, ...]:
        """The days on which the price of one instance changed. Found once: years of refreshes repeat a price."""
        if name not in self._changed:
            listed = name if self._bought_as is None else name_for(name, self._bought_as)
            entries = self._by_name.get(listed, ())
            days = {p.effective_from for p in entries} | {p.fetched_on for p in entries if p.fetched_on}
            rows = [(day, self._row([name], day)) for day in sorted(days)]
            self._changed[name] = tuple(
                day
                for (day, row), (_, before) in zip(rows, [(None, ()), *rows], strict=False)
                if row != before
            )
        return self._changed[name]


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
    """AWS's answer of a day is what holds then; before, only the date that it names is known."""
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
