"""AWS's published inference costs of trn1.2xlarge, recomputed from the published throughputs and the price.

Cost of a million inferences = 1,000,000 / throughput x price of an hour / 3600. Nothing is modelled here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal

from ..calibration.inference_rows import inference_rows
from ..money.billing import cost_per_million
from ..money.prices import Price, PriceBook

Mode = Literal["batch", "real-time"]

INSTANCE = "trn1.2xlarge"
PUBLISHED_ON = date(2023, 4, 12)
USD_PER_HOUR = 1.34
"""The price that AWS's page uses; the EC2 list had 1.34375."""
HALF_THROUGHPUT = 0.5
HALF_COST = 0.0005
"""Half a unit of the last printed digit: throughputs are whole numbers, costs have three decimals."""


@dataclass(frozen=True)
class PublishedInference:
    """One row as AWS printed it. Throughput in inferences per second, latencies in milliseconds."""

    model: str
    throughput_per_s: float
    latency_p50_ms: float
    latency_p99_ms: float
    usd_per_million: float
    mode: Mode
    batch_size: int

    def recomputed(self, usd_per_hour: float) -> float:
        """US dollars for a million inferences, from the printed throughput and a price."""
        return cost_per_million(usd_per_hour, self.throughput_per_s)

    def interval(self, usd_per_hour: float) -> tuple[float, float]:
        """Lowest and highest cost with any throughput that rounds to the printed one."""
        return (
            cost_per_million(usd_per_hour, self.throughput_per_s + HALF_THROUGHPUT),
            cost_per_million(usd_per_hour, self.throughput_per_s - HALF_THROUGHPUT),
        )

    def agrees(self, usd_per_hour: float) -> bool:
        """Whether a throughput that rounds to the printed one can give a cost that rounds to the printed cost."""
        low, high = self.interval(usd_per_hour)
        half = HALF_COST + 1e-9  # what floating point adds to a tie
        return low <= self.usd_per_million + half and high >= self.usd_per_million - half

    def error_percent(self, usd_per_hour: float) -> float:
        """By how much the recomputed cost is above the printed one, percent."""
        return (self.recomputed(usd_per_hour) / self.usd_per_million - 1) * 100


def _published() -> tuple[PublishedInference, ...]:
    rows = [
        PublishedInference(
            row.model,
            row.throughput_per_s,
            row.latency_p50_ms,
            row.latency_p99_ms,
            row.usd_per_million,
            "batch" if row.inference.batch_size > 1 else "real-time",
            row.inference.batch_size,
        )
        for row in inference_rows()
        if row.usd_per_million is not None
    ]
    return tuple(sorted(rows, key=lambda row: row.mode))


SOURCE = next(row.source for row in inference_rows() if row.usd_per_million is not None)
ROWS = _published()
"""The rows of `calibration.inference_rows` that AWS printed with a cost."""


@dataclass(frozen=True)
class InferenceTable:
    """The published rows, and the price in the book, to compare with the one that AWS's page used."""

    rows: tuple[PublishedInference, ...]
    price: Price

    @property
    def agreeing(self) -> int:
        """Number of rows that agree at AWS's own price."""
        return sum(row.agrees(USD_PER_HOUR) for row in self.rows)

    @property
    def to_the_digit(self) -> int:
        """Number of rows whose printed throughput, taken as exact, gives exactly the printed cost."""
        return sum(round(row.recomputed(USD_PER_HOUR), 3) == row.usd_per_million for row in self.rows)


@dataclass(frozen=True)
class InferenceCost:
    """The user's own figure: US dollars for a million inferences at a steady throughput.

    Raises:
        InvalidInput: the throughput is not above 0.
    """

    throughput_per_s: float
    price: Price

    def __post_init__(self) -> None:
        """Check the throughput."""
        cost_per_million(self.price.usd_per_hour, self.throughput_per_s)

    @property
    def usd_per_million(self) -> float:
        """US dollars: 1,000,000 / throughput x price / 3600."""
        return cost_per_million(self.price.usd_per_hour, self.throughput_per_s)


def published_inference(prices: PriceBook | None = None, on: date | None = None) -> InferenceTable:
    """AWS's 12 rows, and the book's price on a day (None: the newest).

    Raises:
        PriceUnknown: no price of trn1.2xlarge on that day.
    """
    return InferenceTable(ROWS, (prices or PriceBook()).price(INSTANCE, on))
