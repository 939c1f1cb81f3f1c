"""What a million inferences cost: AWS's published table, recomputed, and a user's own throughput."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any

from windtunnel.priceperf import Price, PriceBook
from windtunnel.priceperf.published.inference import InferenceCost, InferenceTable, published_inference
from windtunnel.prices.cache import load
from windtunnel.rendering.document import Document
from windtunnel.reports.inference import sections as inference_part
from windtunnel.reports.job.report import DrawnDocument


class PublishedInferenceReport(DrawnDocument):
    """AWS's inference table beside its own arithmetic. ``table`` holds the figures."""

    def __init__(self, table: InferenceTable, price_notes: tuple[str, ...] = ()) -> None:
        """Built by `published`."""
        self.table = table
        self.price_notes = price_notes

    def document(self) -> Document:
        """The report as sections."""
        return inference_part.document(self.table, self.price_notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return inference_part.data(self.table, self.price_notes)


class InferenceReport(DrawnDocument):
    """The cost of a million inferences at a throughput that was given. ``cost`` holds the figures."""

    def __init__(self, cost: InferenceCost, price_notes: tuple[str, ...] = ()) -> None:
        """Built by `inference`."""
        self.cost = cost
        self.price_notes = price_notes

    def document(self) -> Document:
        """The report as sections."""
        return inference_part.own_document(self.cost, self.price_notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return inference_part.own_data(self.cost, self.price_notes)


def published(on: date | None = None, *, prices: PriceBook | None = None) -> PublishedInferenceReport:
    """AWS's 12 published rows, recomputed at AWS's price and at the book's of a day (None: the newest).

    Raises:
        PriceUnknown: the book has no price of trn1.2xlarge on that day.
    """
    book, notes = _book(prices)
    return PublishedInferenceReport(published_inference(book, on), notes)


def inference(
    throughput_per_s: float,
    instance_type: str,
    on: date | None = None,
    *,
    usd_per_hour: float | None = None,
    prices: PriceBook | None = None,
) -> InferenceReport:
    """What a million inferences cost at a steady throughput.

    Args:
        throughput_per_s: inferences per second of one whole instance.
        instance_type: without ``ml.`` its EC2 price, with it SageMaker's price of training.
        on: the day at whose price; None: the newest.
        usd_per_hour: a price of your own in place of the book's.
        prices: another price book.

    Raises:
        PriceUnknown: the book has no price of that instance on that day.
        InvalidInput: a throughput or a price that is not above 0.
    """
    if usd_per_hour is not None:
        day = on or datetime.now(timezone.utc).date()
        own = Price(
            instance_type, usd_per_hour, "as given", "a price given", day, "assumed", "stated by the user"
        )
        return InferenceReport(InferenceCost(throughput_per_s, own))
    book, notes = _book(prices)
    return InferenceReport(InferenceCost(throughput_per_s, book.price(instance_type, on)), notes)


def _book(given: PriceBook | None) -> tuple[PriceBook, tuple[str, ...]]:
    if given is not None:
        return given, ()
    loaded = load()
    return loaded.book, loaded.notes
