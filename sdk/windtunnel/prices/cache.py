"""The price book: built-in entries, and those that this user has fetched from AWS (``prices.json`` in the home).

The file only grows: a refresh adds today's prices and keeps the earlier ones, so that any job can be priced at any
day. If the file is missing or cannot be read, only the built-in prices are used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from windtunnel import settings
from windtunnel.atomic_file import locked, replace_whole
from windtunnel.errors import ConfigurationError
from windtunnel.priceperf import CATALOG, OFFERINGS, Offering, PriceBook, PricePerfError
from windtunnel.priceperf.money.offerings import HOSTING_ON_DEMAND, TRAINING_ON_DEMAND, offering_of
from windtunnel.prices.aws_price_list import ListedPrice, NotListed, fetch, pricing_client

SCHEMA = "windtunnel.prices/1"
FILE = "prices.json"
OLD_AFTER_DAYS = 30
DEFAULT_REGIONS = ("us-east-1",)
DEFAULT_INSTANCES = (*CATALOG, *(name.removeprefix("ml.") for name in CATALOG))


@dataclass(frozen=True)
class LoadedPrices:
    """The price book, the file of fetched prices in it (None: none was read), and notes for the user."""

    book: PriceBook
    path: Path | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Refreshed:
    """The result of a refresh. ``kept``: instances whose prices stay unchanged, with the reason."""

    fetched: tuple[ListedPrice, ...]
    kept: tuple[NotListed, ...]
    path: Path
    before: PriceBook


def load(home: Path | None = None, *, today: date | None = None) -> LoadedPrices:
    """The built-in book with the fetched prices of a home. Reads one file; a damaged file only gives a note.

    Args:
        home: state directory; default WINDTUNNEL_HOME or ~/.windtunnel.
        today: the day from which the prices' age is counted; default: this day (UTC).
    """
    path = cache_path(home)
    built_in = PriceBook()
    try:
        listed = _read(path)
    except ConfigurationError as error:
        return LoadedPrices(built_in, None, (f"{error} Until then the built-in prices serve.",))
    if not listed:
        newest = max(
            price.effective_from for price in built_in.prices if price.offering == TRAINING_ON_DEMAND
        )
        return LoadedPrices(
            built_in,
            None,
            (
                f"Prices: the built-in book, whose newest SageMaker on-demand entry is of {newest}; nothing was "
                "fetched from AWS (windtunnel prices refresh).",
            ),
        )
    book = built_in.adding(item.price() for item in listed)
    return LoadedPrices(book, path, (_age(book, today or _now().date()),))


def book_and_notes(given: PriceBook | None, on: date | None) -> tuple[PriceBook, tuple[str, ...]]:
    """The price book for a report and notes about it. ``given`` None: `load`'s; ``on``: only that day's prices."""
    loaded = LoadedPrices(given, None, ()) if given is not None else load()
    if on is None:
        return loaded.book, loaded.notes
    said = f"Everything modelled is priced at the prices in force on {on}."
    return loaded.book.at(on), (said, *loaded.notes)


def refresh(
    regions: Sequence[str] = DEFAULT_REGIONS,
    instances: Sequence[str] = DEFAULT_INSTANCES,
    *,
    home: Path | None = None,
    boto_session: Any = None,
    client: Any = None,
    offering: Offering | None = None,
) -> Refreshed:
    """Ask AWS for today's prices and store them beside the earlier ones. Blocks: one or two calls for each price.

    All or nothing: the file is replaced as a whole, once, at the end.

    Args:
        regions: AWS regions.
        instances: names with ``ml.`` get SageMaker training prices, others EC2 prices.
        home: state directory; default WINDTUNNEL_HOME or ~/.windtunnel.
        boto_session: a ``boto3.Session`` with the credentials to use; default: AWS's usual chain.
        client: replaces the boto3 client (tests).
        offering: "SageMaker hosting on-demand" for the prices of endpoints.

    Raises:
        PricesUnavailable: AWS refused or was not reached.
        ConfigurationError: the existing file cannot be read, or the shell's AWS variables are the local backend's.
    """
    path = cache_path(home)
    before = PriceBook().adding(item.price() for item in _read(path))
    asked = client or pricing_client(boto_session)
    now = _now()
    found = [
        fetch(asked, name, region, now, offering) for name in dict.fromkeys(instances) for region in regions
    ]
    fetched = tuple(item for item in found if isinstance(item, ListedPrice))
    if fetched:
        _add(path, fetched)
    return Refreshed(fetched, tuple(item for item in found if isinstance(item, NotListed)), path, before)


def cache_path(home: Path | None = None) -> Path:
    """The file of fetched prices."""
    return (home or settings.home()) / FILE


def _add(path: Path, fetched: Iterable[ListedPrice]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.parent / f"{FILE}.lock"):  # so that two refreshes at once lose no price
        kept = {_key(item): item for item in _read(path)}
        kept.update((_key(item), item) for item in fetched)
        document = {"schema": SCHEMA, "prices": [asdict(item) for item in kept.values()]}
        replace_whole(path, json.dumps(document, indent=1) + "\n")


def _key(item: ListedPrice) -> tuple[str, ...]:
    """Identifies an entry: the same price of the same date, fetched again, replaces the earlier entry."""
    return item.instance_type, item.region, item.offering, item.effective_date, item.usd_per_hour, item.sku


def _read(path: Path) -> list[ListedPrice]:
    """The entries of the file; an empty list if it does not exist.

    Raises:
        ConfigurationError: the file cannot be read, or has another form.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']!r}, not {SCHEMA!r}")
        entries = [ListedPrice(**entry) for entry in document["prices"]]
        for entry in entries:
            _check(entry)
    except FileNotFoundError:
        return []
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        PricePerfError,
    ) as error:
        raise ConfigurationError(
            f"The fetched prices in {path} cannot be read ({type(error).__name__}: {error}). Move the file "
            "away and run `windtunnel prices refresh`."
        ) from error
    return entries


def _check(entry: ListedPrice) -> None:
    """Refuse an entry that no refresh would have written, because it would silently change figures.

    Raises:
        ValueError: a value is wrong. Also raises what `ListedPrice.price` raises.
    """
    for name, value in asdict(entry).items():
        if not isinstance(value, str) or not value.isprintable() or (not value and name != "description"):
            raise ValueError(f"{name} {value!r:.80}")
    if entry.offering not in OFFERINGS:
        raise ValueError(f"offering {entry.offering!r}")
    usual = offering_of(entry.instance_type)
    hosting = usual == TRAINING_ON_DEMAND and entry.offering == HOSTING_ON_DEMAND
    if entry.offering != usual and not hosting:
        raise ValueError(f"offering {entry.offering!r} of {entry.instance_type}")
    price = entry.price()
    if price.fetched_on is not None and price.effective_from > price.fetched_on:
        raise ValueError(f"a price of {price.effective_from} that was fetched on {price.fetched_on}")


def _age(book: PriceBook, today: date) -> str:
    newest = book.newest_fetch
    if newest is None:
        return ""
    days = (today - newest).days
    if days < -1:  # one day may come from the time zone
        return (
            f"NEWEST PRICE FETCHED {-days} DAYS AHEAD OF TODAY, on {newest}: either this machine's clock or the "
            f"file {FILE} is wrong. Move the file away and run windtunnel prices refresh."
        )
    when = "today" if days <= 0 else f"{days} day{'s' if days > 1 else ''} ago"
    text = f"Newest price fetched from AWS: {newest} ({when})."
    return f"{text} Older than a month: windtunnel prices refresh." if days > OLD_AFTER_DAYS else text


def _now() -> datetime:
    return datetime.now(timezone.utc)
