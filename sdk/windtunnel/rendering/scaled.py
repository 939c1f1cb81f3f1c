"""A scaling table as a section."""

from __future__ import annotations

from windtunnel.priceperf import Scaling, ScalingRow
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Row, Section

_MODES = {
    "strong": "strong: the global batch stays",
    "weak": "weak: each worker keeps its samples, the global batch grows",
}


def section(table: Scaling) -> Section:
    """Each number of instances: what a step takes, what it gains, what the job costs."""
    notes = [f"{row.instances} instances: not possible, {row.reason}." for row in table.rows if row.reason]
    notes += [
        f"{row.instances} instances: does not fit the memory of a worker."
        for row in table.rows
        if row.estimate is not None and not row.estimate.fits
    ]
    notes += _outside(table)
    if not any(row.cost for row in table.rows):
        notes.append(f"No price of {table.name} is in the book, so there is no cost.")
    base = table.base
    if base is not None:
        notes.append(
            f"Speed-up and efficiency are those of throughput, beside {base.instances} instance"
            f"{'s' if base.instances > 1 else ''}. Hours and cost hold the fixed costs too."
        )
    return Section(
        f"Scaling on {table.name}",
        "modelled",
        f"{table.instance.core_count} {table.instance.core_name}s each; {_MODES[table.mode]}",
        ("batch", "step", "samples/s", "speed-up", "effic.", "hours", "cost", "interval, $"),
        tuple(_row(row) for row in table.rows),
        tuple(notes),
        label_header="nodes",
    )


def _outside(table: Scaling) -> list[str]:
    """Each quantity that lies outside once, with the instances from which on it does."""
    first: dict[str, str] = {}
    for row in table.rows:
        for reason in row.estimate.range_check.outside if row.estimate is not None else ():
            calibrated = reason.rpartition(", calibrated")[2]
            quantity = reason.split(" ")[0]
            first.setdefault(quantity + calibrated, f"from {row.instances} instances on: {reason}")
    return [
        f"OUTSIDE THE CALIBRATED RANGE {text}. Intervals are widened with the distance."
        for text in first.values()
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
