"""What a million inferences cost: AWS's published table, recomputed, and a user's own throughput."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

from windtunnel.priceperf import InvalidInput, Price
from windtunnel.priceperf.published.inference import (
    HALF_COST,
    HALF_THROUGHPUT,
    INSTANCE,
    PUBLISHED_ON,
    SOURCE,
    USD_PER_HOUR,
    InferenceCost,
    InferenceTable,
    PublishedInference,
    published_inference,
)
from windtunnel.prices.cache import load
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.report import Report
from windtunnel.reports.modelled.data import rounded
from windtunnel.reports.prices import price_data

SCHEMA = "windtunnel.inference/1"
_FORMULA = "cost of a million = 1,000,000 / throughput x price of an hour / 3600"
_RULE = (
    f"agrees: some throughput within ±{HALF_THROUGHPUT:g} of the printed one, at ${USD_PER_HOUR:g}, costs "
    f"within ±${HALF_COST:g} of the printed cost: both were rounded to the last digit that they show"
)


@dataclass(eq=False, repr=False)
class PublishedInferenceReport(Report):
    """AWS's inference table beside its own arithmetic. ``table`` holds the figures."""

    table: InferenceTable
    price_notes: tuple[str, ...] = ()

    def document(self) -> Document:
        """All rows: as printed, recomputed at AWS's price, and at the book's."""
        rows: list[Row] = []
        for mode in dict.fromkeys(row.mode for row in self.table.rows):
            rows.append(Row(mode, (), "group"))
            rows += [_row(row, self.table.price) for row in self.table.rows if row.mode == mode]
        price = self.table.price
        at_book = sum(row.agrees(price.usd_per_hour) for row in self.table.rows)
        section = Section(
            "Cost of a million inferences",
            "published",
            "US dollars",
            ("size", "inf/s", "AWS", f"at {USD_PER_HOUR:g}", "", "book"),
            tuple(rows),
            (
                f"size: batch size. AWS: as printed. at {USD_PER_HOUR:g}: {_FORMULA}, at the price that AWS's page "
                f"used. {_RULE}.",
                f"book: the same at the price book's {fmt.price(price.usd_per_hour)} ({price.offering}, "
                f"{price.region}, {price.status}, since {price.effective_from}): {price.source}. At that price "
                f"{at_book} of {len(self.table.rows)} rows agree.",
                f"{self.table.to_the_digit} of {len(self.table.rows)} rows give the printed cost to the digit when the "
                "printed throughput is taken as exact.",
                *self.price_notes,
            ),
            label_header="model",
        )
        return Document(
            f"AWS's published inference costs on {INSTANCE}",
            SOURCE,
            (
                f"{self.table.agreeing} of {len(self.table.rows)} rows agree at the then price of ${USD_PER_HOUR:g} an "
                "hour.",
            ),
            (section,),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data; US dollars for a million, errors in percent of the printed cost."""
        return {
            "schema": SCHEMA,
            "source": SOURCE,
            "published_on": PUBLISHED_ON.isoformat(),
            "usd_per_hour": USD_PER_HOUR,
            "formula": _FORMULA,
            "agreement": _RULE,
            "rows": [_row_data(row, self.table.price) for row in self.table.rows],
            "agreeing": self.table.agreeing,
            "to_the_digit": self.table.to_the_digit,
            "book_price": price_data(self.table.price),
            "price_notes": list(self.price_notes),
        }


@dataclass(eq=False, repr=False)
class InferenceReport(Report):
    """The cost of a million inferences at a throughput that was given. ``cost`` holds the figures.

    ``instance_type``: None: only its price is known.
    """

    cost: InferenceCost
    instance_type: str | None
    price_notes: tuple[str, ...] = ()

    def document(self) -> Document:
        """The given throughput, the price, and the cost of a million inferences."""
        price = self.cost.price
        if price.status == "stated":
            bought = [Row("Price of an hour", (f"{fmt.price(price.usd_per_hour)}, as you state it",))]
            notes = self.price_notes
        else:
            bought = [
                Row("Price of an hour", (f"{fmt.price(price.usd_per_hour)} {price.offering}",)),
                Row("Since", (f"{price.effective_from}, {price.region}, {price.status}",)),
            ]
            notes = (f"Price: {price.source}.", *_training_note(price), *self.price_notes)
        rows = (
            Row("Throughput", (f"{fmt.given(self.cost.throughput_per_s)} inferences/s",)),
            *bought,
            Row("A million inferences", (f"${fmt.significant(self.cost.usd_per_million, 4)}",), "total"),
        )
        return Document(
            f"Cost of inference{'' if self.instance_type is None else f' on {self.instance_type}'}",
            _FORMULA,
            (),
            (
                Section(
                    "A million inferences",
                    "measured",
                    "from the throughput that you gave, steady and for a whole instance",
                    rows=rows,
                    notes=notes,
                ),
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        unknown = {"instance_type": None, "offering": None} if self.instance_type is None else {}
        return {
            "schema": SCHEMA,
            "throughput_per_second": self.cost.throughput_per_s,
            "usd_per_million": rounded(self.cost.usd_per_million),
            "formula": _FORMULA,
            "price": {**price_data(self.cost.price), **unknown},
            "price_notes": [*_training_note(self.cost.price), *self.price_notes],
        }


def published(on: date | None = None) -> PublishedInferenceReport:
    """AWS's 12 published rows, recomputed at AWS's price and at the book's of a day (None: the newest).

    Raises:
        PriceUnknown: the book has no price of trn1.2xlarge on that day.
    """
    loaded = load()
    return PublishedInferenceReport(published_inference(loaded.book, on), loaded.notes)


def inference(
    throughput_per_s: float, instance_type: str | None, on: date | None, *, usd_per_hour: float | None
) -> InferenceReport:
    """What a million inferences cost at a steady throughput.

    Args:
        throughput_per_s: inferences per second of one whole instance.
        instance_type: without ``ml.`` its EC2 price, with it SageMaker's price of training. None: one whose price is
            given.
        on: the day at whose price; None: the newest.
        usd_per_hour: a price of your own in place of the book's.

    Raises:
        PriceUnknown: the book has no price of that instance on that day.
        InvalidInput: a throughput or a price that is not above 0, or neither an instance nor a price.
    """
    if usd_per_hour is not None:
        day = on or datetime.now(timezone.utc).date()
        own = Price.stated(instance_type or "an hour", usd_per_hour, day)
        return InferenceReport(InferenceCost(throughput_per_s, own), instance_type)
    if instance_type is None:
        raise InvalidInput("the cost of a throughput needs the instance type, or the price of its hour")
    loaded = load()
    cost = InferenceCost(throughput_per_s, loaded.book.price(instance_type, on))
    return InferenceReport(cost, instance_type, loaded.notes)


def _row(row: PublishedInference, price: Price) -> Row:
    verdict = "agrees" if row.agrees(USD_PER_HOUR) else f"OFF by {row.error_percent(USD_PER_HOUR):+.1f} %"
    cells = (
        f"{row.batch_size}",
        f"{row.throughput_per_s:,.0f}",
        f"{row.usd_per_million:.3f}",
        f"{row.recomputed(USD_PER_HOUR):.4f}",
        verdict,
        f"{row.recomputed(price.usd_per_hour):.4f}",
    )
    return Row(row.model, cells)


def _row_data(row: PublishedInference, price: Price) -> dict[str, Any]:
    low, high = row.interval(USD_PER_HOUR)
    return {
        "model": row.model,
        "mode": row.mode,
        "batch_size": row.batch_size,
        "instance_type": INSTANCE,
        "throughput_per_second": row.throughput_per_s,
        "latency_p50_ms": row.latency_p50_ms,
        "latency_p99_ms": row.latency_p99_ms,
        "published": row.usd_per_million,
        "recomputed": round(row.recomputed(USD_PER_HOUR), 6),
        "recomputed_interval": [round(low, 6), round(high, 6)],
        "error_percent": round(row.error_percent(USD_PER_HOUR), 3),
        "agrees": row.agrees(USD_PER_HOUR),
        "at_book_price": round(row.recomputed(price.usd_per_hour), 6),
    }


def _training_note(price: Price) -> tuple[str, ...]:
    if not price.instance_type.startswith("ml.") or price.status == "stated":
        return ()
    return (
        f"{price.instance_type} is SageMaker's price of training; what it costs to host an endpoint is not "
        "in the book (--usd-per-hour, if you know it).",
    )
