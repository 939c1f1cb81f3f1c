"""The price book with what this user has fetched from AWS: built-in entries and ``prices.json`` in the home.

The file only grows: a refresh adds what AWS says today and keeps what it said before, so any job can be
priced again at any day. Without the file, or with one that cannot be read, the built-in book serves.
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
    """The book, the file that was read beside the built-in entries (None: there is none), and what to know."""

    book: PriceBook
    path: Path | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Refreshed:
    """What a refresh brought. ``kept``: those for which the book stays as it was, with the reason."""

    fetched: tuple[ListedPrice, ...]
    kept: tuple[NotListed, ...]
    path: Path
    before: PriceBook


def load(home: Path | None = None, *, today: date | None = None) -> LoadedPrices:
    """The built-in book with the fetched prices of a home. Reads one file; never fails for its content.

    Args:
        home: state directory; default WINDTUNNEL_HOME or ~/.windtunnel.
        today: tells the age of what was fetched; default: this day (UTC).
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
    """The book of a report (None: `load`'s), as of a day if one is given, and what to know of it."""
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
    """Ask AWS for today's prices and keep them beside the earlier ones. Blocks: a call or two a price.

    All or nothing: the file is written once, at the end, and replaced as a whole.

    Args:
        regions: AWS regions.
        instances: with ``ml.`` SageMaker training prices, without EC2 prices.
        home: state directory; default WINDTUNNEL_HOME or ~/.windtunnel.
        boto_session: whose credentials ask; default: AWS's usual chain.
        client: replaces the boto3 client (tests).
        offering: "SageMaker hosting on-demand" for what endpoints cost.

    Raises:
        PricesUnavailable: AWS refused or was not reached.
        ConfigurationError: the file there cannot be read, or the shell leads to the local backend.
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
    """Where fetched prices are kept."""
    return (home or settings.home()) / FILE


def _add(path: Path, fetched: Iterable[ListedPrice]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(path.parent / f"{FILE}.lock"):  # two refreshes at once lose nothing
        kept = {_key(item): item for item in _read(path)}
        kept.update((_key(item), item) for item in fetched)
        document = {"schema": SCHEMA, "prices": [asdict(item) for item in kept.values()]}
        replace_whole(path, json.dumps(document, indent=1) + "\n")


def _key(item: ListedPrice) -> tuple[str, ...]:
    """The same price of the same date, fetched again, is one entry with the later day."""
    return item.instance_type, item.region, item.offering, item.effective_date, item.usd_per_hour, item.sku


def _read(path: Path) -> list[ListedPrice]:
    """The entries of the file; none without one.

    Raises:
        ConfigurationError: it is there and cannot be read, or is of another form.
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
    """Refuse an entry that a refresh would not have written: it would change figures silently.

    Raises:
        ValueError: and what `ListedPrice.price` raises.
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
    if days < -1:  # a day's difference may be the time zone's
        return (
            f"NEWEST PRICE FETCHED {-days} DAYS AHEAD OF TODAY, on {newest}: either this machine's clock or the "
            f"file {FILE} is wrong. Move the file away and run windtunnel prices refresh."
        )
    when = "today" if days <= 0 else f"{days} day{'s' if days > 1 else ''} ago"
    text = f"Newest price fetched from AWS: {newest} ({when})."
    return f"{text} Older than a month: windtunnel prices refresh." if days > OLD_AFTER_DAYS else text


def _now() -> datetime:
    return datetime.now(timezone.utc)
