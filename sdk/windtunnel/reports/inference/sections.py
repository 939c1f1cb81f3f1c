"""AWS's inference table and a user's own figure, as documents and as data."""

from __future__ import annotations

from typing import Any

from windtunnel.priceperf import Price
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
)
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.reports.prices.sections import price_data

SCHEMA = "windtunnel.inference/1"
_FORMULA = "cost of a million = 1,000,000 / throughput x price of an hour / 3600"
_RULE = (
    f"agrees: some throughput within ±{HALF_THROUGHPUT:g} of the printed one, at ${USD_PER_HOUR:g}, costs "
    f"within ±${HALF_COST:g} of the printed cost: both were rounded to the last digit that they show"
)


def document(table: InferenceTable, price_notes: tuple[str, ...] = ()) -> Document:
    """All rows: as printed, recomputed at AWS's price, and at the book's."""
    rows: list[Row] = []
    for mode in dict.fromkeys(row.mode for row in table.rows):
        rows.append(Row(mode, (), "group"))
        rows += [_row(row, table.price) for row in table.rows if row.mode == mode]
    price = table.price
    at_book = sum(row.agrees(price.usd_per_hour) for row in table.rows)
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
            f"{at_book} of {len(table.rows)} rows agree.",
            f"{table.to_the_digit} of {len(table.rows)} rows give the printed cost to the digit when the printed "
            "throughput is taken as exact.",
            *price_notes,
        ),
        label_header="model",
    )
    return Document(
        f"AWS's published inference costs on {INSTANCE}",
        SOURCE,
        (
            f"{table.agreeing} of {len(table.rows)} rows agree at the then price of ${USD_PER_HOUR:g} an hour.",
        ),
        (section,),
    )


def data(table: InferenceTable, price_notes: tuple[str, ...] = ()) -> dict[str, Any]:
    """The same for machines; US dollars for a million, errors in percent of the printed cost."""
    return {
        "schema": SCHEMA,
        "source": SOURCE,
        "published_on": PUBLISHED_ON.isoformat(),
        "usd_per_hour": USD_PER_HOUR,
        "formula": _FORMULA,
        "agreement": _RULE,
        "rows": [_row_data(row, table.price) for row in table.rows],
        "agreeing": table.agreeing,
        "to_the_digit": table.to_the_digit,
        "book_price": price_data(table.price),
        "price_notes": list(price_notes),
    }


def own_document(cost: InferenceCost, price_notes: tuple[str, ...] = ()) -> Document:
    """A user's throughput as the cost of a million."""
    price = cost.price
    rows = (
        Row("Throughput", (f"{cost.throughput_per_s:,g} inferences/s",)),
        Row("Price of an hour", (f"{fmt.price(price.usd_per_hour)} {price.offering}",)),
        Row("Since", (f"{price.effective_from}, {price.region}, {price.status}",)),
        Row("A million inferences", (f"${cost.usd_per_million:.4g}",), "total"),
    )
    return Document(
        f"Cost of inference on {price.instance_type}",
        _FORMULA,
        (),
        (
            Section(
                "A million inferences",
                "measured",
                "from the throughput that you gave, steady and for a whole instance",
                rows=rows,
                notes=(f"Price: {price.source}.", *_training_note(price), *price_notes),
            ),
        ),
    )


def own_data(cost: InferenceCost, price_notes: tuple[str, ...] = ()) -> dict[str, Any]:
    """The same for machines."""
    return {
        "schema": SCHEMA,
        "throughput_per_second": cost.throughput_per_s,
        "usd_per_million": float(f"{cost.usd_per_million:.6g}"),
        "formula": _FORMULA,
        "price": price_data(cost.price),
        "price_notes": [*_training_note(cost.price), *price_notes],
    }


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
    if not price.instance_type.startswith("ml."):
        return ()
    return (
        f"{price.instance_type} is SageMaker's price of training; what it costs to host an endpoint is not "
        "in the book (--usd-per-hour, if you know it).",
    )
