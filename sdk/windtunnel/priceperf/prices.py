"""The price book: what an hour costs, since when, and how we know.

A price never travels without its date and status:

- ``published``: AWS printed it,
- ``derived``: computed from another price by a rule that is named,
- ``seen``: read in a third party's copy of AWS's list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from .errors import InvalidInput, PriceUnknown

Status = Literal["published", "derived", "seen"]


@dataclass(frozen=True)
class Price:
    """On-demand price of one instance for one hour, in US dollars, valid from ``effective_from`` on."""

    instance_type: str
    usd_per_hour: float
    region: str
    offering: str
    effective_from: date
    status: Status
    source: str

    def __post_init__(self) -> None:
        """Refuse prices that are no prices."""
        if not self.usd_per_hour > 0:
            raise InvalidInput(f"price of {self.instance_type} must be above 0, not {self.usd_per_hour}")


_TRAINING = "SageMaker training on-demand"
_EC2 = "EC2 on-demand"
_BLOG = "AWS blog, price/performance table of trn1 against p4d"
_BLOG_P4D = f"{_BLOG}; 37.688 elsewhere"
_VANTAGE = "EC2 price list via Vantage data of 2025-11-30"
_VANTAGE_2XL = f"{_VANTAGE}; AWS's inference table uses 1.34"
_OLD_LIST = "EC2 price list before the reduction of June 2025"
_UPLIFT = "EC2 price x 1.15 (holds for trn1 and p4d; 1.2-1.25 for other families)"
_SEEN = (
    "third-party copy of the AWS Price List (Studio SKU); equals EC2 21.957642 x 1.15; "
    "the training SKU was not seen directly"
)

_P4D = date(2020, 11, 1)
_LAUNCH = date(2022, 10, 10)
_TRN1N = date(2023, 4, 1)
_REDUCTION = date(2025, 6, 1)

BUILT_IN: tuple[Price, ...] = (
    Price("ml.trn1.2xlarge", 1.5453, "us-east-1", _TRAINING, _LAUNCH, "derived", _UPLIFT),
    Price("ml.trn1.32xlarge", 24.725, "us-east-1", _TRAINING, _LAUNCH, "published", _BLOG),
    Price("ml.trn1n.32xlarge", 28.497, "us-east-1", _TRAINING, _TRN1N, "derived", _UPLIFT),
    Price("ml.p4d.24xlarge", 37.69, "us-east-1", _TRAINING, _LAUNCH, "published", _BLOG_P4D),
    Price("ml.p4d.24xlarge", 25.251286, "us-west-2", _TRAINING, _REDUCTION, "seen", _SEEN),
    Price("trn1.2xlarge", 1.34375, "us-east-1", _EC2, _LAUNCH, "published", _VANTAGE_2XL),
    Price("trn1.32xlarge", 21.50, "us-east-1", _EC2, _LAUNCH, "published", _VANTAGE),
    Price("trn1n.32xlarge", 24.78, "us-east-1", _EC2, _TRN1N, "published", _VANTAGE),
    Price("p4d.24xlarge", 32.7726, "us-east-1", _EC2, _P4D, "published", _OLD_LIST),
    Price("p4d.24xlarge", 21.957642, "us-east-1", _EC2, _REDUCTION, "published", f"{_VANTAGE} (-33.0 %)"),
)
"""``ml.`` names are SageMaker training prices, bare names EC2 prices."""


class PriceBook:
    """Dated prices. Immutable; lookups take the nearest earlier price."""

    def __init__(self, prices: Iterable[Price] = BUILT_IN) -> None:
        """A book of the given prices (default: the built-in ones)."""
        self._prices = tuple(sorted(prices, key=lambda price: (price.instance_type, price.effective_from)))

    def price(self, instance_type: str, on: date | None = None, region: str | None = None) -> Price:
        """The price in force on a day: the nearest earlier one. ``on=None``: the newest.

        ``region=None`` takes the price of whichever region is in the book; the answer names it.

        Raises:
            PriceUnknown: no price of that instance is in force then.
        """
        known = [
            price
            for price in self._prices
            if price.instance_type == instance_type and region in (None, price.region)
        ]
        current = [price for price in known if on is None or price.effective_from <= on]
        if current:
            return current[-1]
        if known:
            raise PriceUnknown(
                f"No price of {instance_type} on {on}: the first in the book is of "
                f"{known[0].effective_from}. Ask for a later date."
            )
        where = "" if region is None else f" in {region}"
        names = sorted({price.instance_type for price in self._prices})
        raise PriceUnknown(f"No price of {instance_type}{where} in the book. It has: {', '.join(names)}.")

    def dates(self, instance_types: Sequence[str]) -> tuple[date, ...]:
        """The days at which a price of these instances changed and all of them had one, oldest first."""
        chosen = [price for price in self._prices if price.instance_type in instance_types]
        if {price.instance_type for price in chosen} != set(instance_types):
            return ()
        first = max(
            min(price.effective_from for price in chosen if price.instance_type == name)
            for name in instance_types
        )
        return tuple(sorted({max(price.effective_from, first) for price in chosen}))
