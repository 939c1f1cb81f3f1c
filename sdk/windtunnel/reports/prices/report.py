"""The price book as a report that draws itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from windtunnel.priceperf import Price, PriceUnknown
from windtunnel.prices.cache import LoadedPrices, load
from windtunnel.rendering.document import Document
from windtunnel.reports.job.report import DrawnDocument
from windtunnel.reports.prices import sections as prices_part


class PricesReport(DrawnDocument):
    """Dated prices with status and source. ``prices``: those shown; ``loaded``: the whole book."""

    def __init__(self, prices: Sequence[Price], loaded: LoadedPrices, on: date | None) -> None:
        """Built by `prices`."""
        self.prices = tuple(prices)
        self.loaded = loaded
        self.on = on

    def document(self) -> Document:
        """The report as sections."""
        return prices_part.document(self.prices, self.loaded, self.on)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return prices_part.data(self.prices, self.loaded, self.on)


def prices(
    *, on: date | None = None, instances: Sequence[str] | None = None, regions: Sequence[str] | None = None
) -> PricesReport:
    """The built-in prices and those fetched from AWS. Reads one file.

    Args:
        on: only what is in force that day; None: every dated entry.
        instances: with ``ml.`` SageMaker, without EC2; None: all in the book.
        regions: None: all in the book.

    Raises:
        PriceUnknown: nothing in the book is what was asked for.
    """
    loaded = load()
    chosen = [
        price
        for price in loaded.book.prices
        if (not instances or price.instance_type in instances) and (not regions or price.region in regions)
    ]
    if on is not None:
        found = dict.fromkeys((price.instance_type, price.region) for price in chosen)
        chosen = [price for name, region in found if (price := _in_force(loaded, name, on, region))]
    if not chosen:
        oldest = min(price.effective_from for price in loaded.book.prices)
        names = ", ".join(sorted({price.instance_type for price in loaded.book.prices}))
        places = ", ".join(sorted({price.region for price in loaded.book.prices}))
        asked = [*(instances or ()), *(regions or ()), *([str(on)] if on else [])]
        raise PriceUnknown(
            f"Nothing in the book for {' '.join(asked)}. It has, each since its date ({oldest} the first): {names}; "
            f"regions: {places}. "
            "Others: windtunnel prices refresh --instances TYPE --region REGION."
        )
    return PricesReport(chosen, loaded, on)


def _in_force(loaded: LoadedPrices, name: str, on: date, region: str) -> Price | None:
    try:
        return loaded.book.price(name, on, region)
    except PriceUnknown:
        return None
