"""A scaling table as a section."""

from __future__ import annotations

import re
from collections.abc import Sequence

from windtunnel.priceperf import Scaling, ScalingRow
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Row, Section

_MODES = {
    "strong": "strong: the global batch stays",
    "weak": "weak: each worker keeps its samples, the global batch grows",
}


def title(table: Scaling) -> str:
    """Of the section."""
    return f"Scaling on {table.name}"


def section(table: Scaling) -> Section:
    """Each number of instances: what a step takes, what it gains, what the job costs."""
    running = [row for row in table.rows if row.estimate is not None]
    notes = _grouped(
        "Not possible", [(row.instances, row.reason) for row in table.rows if row.reason], len(table.rows)
    )
    unfit = [
        (row.instances, "the job does not fit the memory of a worker") for row in running if not _fits(row)
    ]
    notes += _grouped("DOES NOT FIT", unfit, len(running))
    outside = [
        (row.instances, reason)
        for row in running
        for reason in (row.estimate.range_check.outside if row.estimate is not None else ())
    ]
    widened = _grouped("OUTSIDE THE CALIBRATED RANGE", outside, len(running))
    notes += [f"{note} Intervals are widened with the distance." for note in widened]
    price = next((row.cost.price for row in table.rows if row.cost is not None), None)
    if price is not None:
        notes.append(
            f"Cost: at {fmt.price(price.usd_per_hour)} an hour of an instance ({price.region}, {price.status}, "
            f"valid from {price.effective_from})."
        )
    else:
        notes.append(f"No price of {table.name} is in the book, so there is no cost.")
    base = table.base
    if base is not None:
        notes.append(
            f"Speed-up and efficiency are those of throughput, beside {base.instances} instance"
            f"{'s' if base.instances > 1 else ''}. Hours and cost hold the fixed costs too."
        )
    return Section(
        title(table),
        "modelled",
        f"{table.instance.core_count} {table.instance.core_name}s each; {_MODES[table.mode]}",
        ("batch", "step", "samples/s", "speed-up", "effic.", "hours", "cost", "interval, $"),
        tuple(_row(row) for row in table.rows),
        tuple(notes),
        label_header="nodes",
    )


def _fits(row: ScalingRow) -> bool:
    return row.estimate is None or row.estimate.fits


def _grouped(title: str, found: Sequence[tuple[int, str]], rows: int) -> list[str]:
    """Reasons that differ only by their numbers once, with the instances that they hold for."""
    counts: dict[str, list[int]] = {}
    first: dict[str, str] = {}
    for count, reason in found:
        kind = re.sub(r"\d+", "#", reason)
        counts.setdefault(kind, []).append(count)
        first.setdefault(kind, reason)
    return [
        f"{title} on {'all' if len(each) == rows else ', '.join(f'{count:,}' for count in each) + ' instances'}: "
        f"{first[kind]}."
        for kind, each in counts.items()
    ]


def _row(row: ScalingRow) -> Row:
    if row.estimate is None or row.speed_up is None or row.efficiency is None:
        batch = "-" if row.global_batch is None else fmt.plain(row.global_batch)
        return Row(f"{row.instances:,}", (batch, "no"))
    item, cost = row.estimate, row.cost
    return Row(
        f"{row.instances:,}",
        (
            fmt.plain(item.global_batch),
            fmt.modelled_seconds(item.step.total_s),
            fmt.significant(item.samples_per_s),
            f"{fmt.significant(row.speed_up, 3)}",
            fmt.percent(row.efficiency),
            fmt.significant(item.billable_s / 3600),
            "no price" if cost is None else fmt.dollars(cost.usd),
            "" if cost is None else f"{fmt.significant(cost.low_usd)}-{fmt.significant(cost.high_usd)}",
        ),
    )
