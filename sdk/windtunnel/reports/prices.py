"""The report of the price list, and what a refresh of it brought."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, cast

from windtunnel.priceperf import Offering, Price, PriceUnknown
from windtunnel.priceperf.errors import did_you_mean
from windtunnel.priceperf.money.offerings import CLAIMS
from windtunnel.prices.cache import LoadedPrices, Refreshed, load
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.report import Report

SCHEMA = "windtunnel.prices/1"
_NEAREST = "Each the nearest earlier entry of its region: a later change may be unknown to the book."
_MEANINGS = {
    "published": "AWS printed it",
    "derived": "computed from another price by the rule in its source",
    "seen": "read in a third party's copy of AWS's list",
    "fetched": "AWS's Price List API answered with it",
    "assumed": "on-demand less a discount stated by the user",
    "stated": "the user's own",
}


@dataclass(eq=False, repr=False)
class PricesReport(Report):
    """Dated prices with status and source.

    ``prices``: those shown; ``loaded``: the whole book; ``missing``: instances and regions that were asked for and have
    no price here.
    """

    prices: Sequence[Price]
    loaded: LoadedPrices
    on: date | None
    missing: tuple[str, ...] = ()

    def document(self) -> Document:
        """A row for each price, with the sources below."""
        sources = {
            source: index for index, source in enumerate(dict.fromkeys(p.source for p in self.prices), 1)
        }
        rows: list[Row] = []
        for offering in dict.fromkeys(price.offering for price in self.prices):
            rows.append(Row(offering, (), "group"))
            rows += [
                Row(
                    price.instance_type,
                    (
                        fmt.price(price.usd_per_hour),
                        price.region,
                        price.days,
                        f"{price.status} {sources[price.source]}",
                    ),
                )
                for price in self.prices
                if price.offering == offering
            ]
        statuses = dict.fromkeys(price.status for price in self.prices)
        table = Section(
            "Prices",
            "published",
            "US dollars an hour; the number behind the status is that of its source",
            ("price", "region", "since", "status"),
            tuple(rows),
            (
                *((_NEAREST,) if self.on else ()),
                *(f"{status}: {_MEANINGS[status]}." for status in statuses),
            ),
            label_header="instance",
        )
        kept = "built-in" if self.loaded.path is None else f"built-in, and fetched ones in {self.loaded.path}"
        return Document(
            "The price book",
            f"in force on {self.on}" if self.on else "all dated entries",
            (f"Nothing here for {', '.join(self.missing)}.",) if self.missing else (),
            (
                table,
                Section("Sources", "text", notes=tuple(f"{index}: {source}." for source, index in sources.items())),
                Section("Discounts are no prices", "text", notes=_claims()),
                Section("Where the book comes from", "text", notes=(f"Entries: {kept}.", *self.loaded.notes)),
            ),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain data; US dollars an hour."""
        return {
            "schema": SCHEMA,
            "on": self.on.isoformat() if self.on else None,
            "prices": [price_data(price) for price in self.prices],
            "missing": list(self.missing),
            "claims": [
                {"offering": offering, "up_to": claim.up_to, "words": claim.words, "source": claim.source}
                for offering, claim in CLAIMS.items()
            ],
            "fetched_prices_in": str(self.loaded.path) if self.loaded.path else None,
            "newest_fetch": _iso(self.loaded.book.newest_fetch),
            "notes": list(self.loaded.notes),
        }


def prices(
    *, on: date | None = None, instances: Sequence[str] | None = None, regions: Sequence[str] | None = None
) -> PricesReport:
    """The built-in prices and those fetched from AWS. Reads one file.

    Args:
        on: only prices in force on that day; None: every dated entry.
        instances: names with ``ml.`` are SageMaker's, others EC2's; a family (``trn1``) stands for all its types. None:
            all in the book.
        regions: None: all in the book.

    Raises:
        PriceUnknown: the book has no price of what was asked for.
    """
    loaded = load()
    chosen = [
        price
        for price in loaded.book.prices
        if not instances or any(_is_meant(price.instance_type, asked) for asked in instances)
        if not regions or price.region in regions
    ]
    if on is not None:
        found = dict.fromkeys((price.instance_type, price.region, price.offering) for price in chosen)
        chosen = [price for name, place, way in found if (price := _in_force(loaded, name, on, place, way))]
    if not chosen:
        known = sorted({price.instance_type for price in loaded.book.prices})
        oldest = min(price.effective_from for price in loaded.book.prices)
        places = sorted({price.region for price in loaded.book.prices})
        wrong = [*((name, known) for name in instances or ()), *((name, places) for name in regions or ())]
        nearest = "".join(
            did_you_mean(name, valid)
            for name, valid in wrong
            if not any(_is_meant(one, name) for one in valid)
        )
        asked = [*(instances or ()), *(regions or ()), *([str(on)] if on else [])]
        raise PriceUnknown(
            f"Nothing in the book for {' '.join(asked)}.{nearest} It has, each since its date ({oldest} the first): "
            f"{', '.join(known)}; regions: {', '.join(places)}. "
            "Others: windtunnel prices refresh --instances TYPE --region REGION."
        )
    missing = [
        *(name for name in instances or () if not any(_is_meant(one.instance_type, name) for one in chosen)),
        *(name for name in regions or () if all(one.region != name for one in chosen)),
    ]
    return PricesReport(tuple(chosen), loaded, on, tuple(dict.fromkeys(map(fmt.name, missing))))


def _is_meant(name: str, asked: str) -> bool:
    return name == asked or name.startswith((f"{asked}.", f"ml.{asked}."))


def _in_force(loaded: LoadedPrices, name: str, on: date, region: str, offering: str) -> Price | None:
    with suppress(PriceUnknown):
        return loaded.book.price(name, on, region, cast("Offering", offering))
    return None


def price_data(price: Price) -> dict[str, Any]:
    """One price with its date, status and source."""
    return {
        **asdict(price),
        "effective_from": price.effective_from.isoformat(),
        "fetched_on": _iso(price.fetched_on),
        "until": _iso(price.until),
    }


def refreshed_lines(done: Refreshed) -> list[str]:
    """What a refresh fetched: each price beside the one before it, and which entries stayed as they were."""
    lines = []
    for item in done.fetched:
        price = item.price()
        lines.append(
            f"{price.instance_type}  {price.region}  {price.offering}  {fmt.price(price.usd_per_hour)} an hour "
            f"since {price.effective_from}  ({_before(price, done)})"
        )
    lines += [f"kept as it was: {item.instance_type} {item.region}: {item.reason}." for item in done.kept]
    count = len(done.fetched)
    where = f" in {done.path}" if count else "; nothing was written"
    return [*lines, f"{fmt.many(count, 'price')} of {count + len(done.kept)} fetched{where}"]


def refreshed_data(done: Refreshed) -> dict[str, Any]:
    """The same as data for JSON."""
    return {
        "schema": SCHEMA,
        "fetched": [price_data(item.price()) for item in done.fetched],
        "kept": [asdict(item) for item in done.kept],
        "path": str(done.path) if done.fetched else None,
    }


def _before(price: Price, done: Refreshed) -> str:
    try:
        old = done.before.price(
            price.instance_type, price.fetched_on, price.region, cast("Offering", price.offering)
        )
    except PriceUnknown:
        return "new in the book"
    if old.usd_per_hour == price.usd_per_hour:
        return "as before"
    return f"before {fmt.price(old.usd_per_hour)}, {old.status}, since {old.effective_from}"


def _claims() -> tuple[str, ...]:
    return tuple(
        f"{offering}: no price is known here, only AWS's words {claim.words!r} ({claim.source}). With a "
        f"discount of your own: PriceBook().assuming({offering!r}, 0.3), at most {claim.up_to}; marked assumed."
        for offering, claim in CLAIMS.items()
    )


def _iso(day: date | None) -> str | None:
    return day.isoformat() if day else None
