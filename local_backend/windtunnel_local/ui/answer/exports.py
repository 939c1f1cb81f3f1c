"""The report as a file to download: HTML, CSV, JSON or PNG."""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from windtunnel.rendering.plots.chart import MISSING, available
from windtunnel.reports.job.report import PricePerformance

_DRAWING = threading.Lock()
"""Held while Matplotlib draws, because its settings belong to the whole process."""
_PNG_DPI = 200
COLUMNS = (
    "prices_on", "instance_type", "instance_count", "precision", "global_batch", "samples_per_worker", "fits",
    "step_s", "step_low_s", "step_high_s", "samples_per_s", "steps", "billable_s", "billable_low_s", "billable_high_s",
    "usd", "low_usd", "high_usd", "offering", "region", "usd_per_hour", "price_from", "price_status",
)  # fmt: skip


class NotHere(Exception):
    """The report cannot be written in this form here. The message says why."""


@dataclass(frozen=True)
class FileType:
    """A kind of file: its media type, and the function that writes the bytes."""

    media_type: str
    written: Callable[[PricePerformance], bytes]


def _html(report: PricePerformance) -> bytes:
    with _DRAWING:
        return report.to_html().encode("utf-8", "replace")


def _png(report: PricePerformance) -> bytes:
    if not available():
        raise NotHere(MISSING)
    if not report.charts():
        raise NotHere("there is nothing to draw, as nothing can be modelled from what this job left.")
    buffer = io.BytesIO()
    with _DRAWING:
        report.plot(None).savefig(buffer, format="png", dpi=_PNG_DPI)
    return buffer.getvalue()


def csv_text(report: PricePerformance) -> str:
    """One row for each instance and each date of prices, from `PricePerformance.to_dict`. Headings have the units."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    modelled = report.to_dict()["modelled"] or {"estimates": ()}
    for estimate in modelled["estimates"]:
        costs: list[Mapping[str, Any]] = estimate["costs"] or [{}]
        writer.writerows(_row(estimate, cost) for cost in costs)
    return buffer.getvalue()


def _row(estimate: Mapping[str, Any], cost: Mapping[str, Any]) -> dict[str, Any]:
    price = cost.get("price", {})
    dollars = {} if estimate["fits"] is False else cost
    low, high = dollars.get("interval_usd", ("", ""))
    return {
        **{name: estimate[name] for name in COLUMNS if name in estimate},
        "precision": estimate["precision"]["name"],
        "step_s": estimate["step"]["total_s"],
        "step_low_s": estimate["step"]["interval_s"][0],
        "step_high_s": estimate["step"]["interval_s"][1],
        "billable_low_s": estimate["billable_interval_s"][0],
        "billable_high_s": estimate["billable_interval_s"][1],
        "prices_on": cost.get("on", ""),
        "usd": dollars.get("usd", ""),
        "low_usd": low,
        "high_usd": high,
        **{name: price.get(name, "") for name in ("offering", "region", "usd_per_hour")},
        "price_from": price.get("effective_from", ""),
        "price_status": price.get("status", ""),
    }


FILE_TYPES: Mapping[str, FileType] = {
    "html": FileType("text/html; charset=utf-8", _html),
    "csv": FileType("text/csv; charset=utf-8", lambda report: csv_text(report).encode()),
    "json": FileType("application/json", lambda report: report.to_json().encode("utf-8", "replace")),
    "png": FileType("image/png", _png),
}
