"""One job on more and more instances of a type: what each number gains and costs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from windtunnel.priceperf import FullScale, PriceBook, Scaling, ScalingRow
from windtunnel.priceperf import scaling as scale_workload
from windtunnel.priceperf.money.scaling import COUNTS
from windtunnel.priceperf.workload.cluster import no_cluster
from windtunnel.prices.cache import book_and_notes
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.report import Report
from windtunnel.reports.comparison.data import scaling_data
from windtunnel.reports.comparison.scaling_chart import scaling_charts
from windtunnel.reports.comparison.subject import Subject, read
from windtunnel.reports.job.report import AS_THE_JOB, Precisions
from windtunnel.reports.modelled.instances import LARGEST_NEURON
from windtunnel.reports.modelled.labels import numbers
from windtunnel.user_calibration import STORED, CalibrationStore, loaded

SCHEMA = "windtunnel.scaling/1"
_MODES = {
    "strong": "strong: the global batch stays",
    "weak": "weak: each worker keeps its samples, the global batch grows",
}


@dataclass(eq=False, repr=False)
class ScalingReport(Report):
    """One job on more and more instances. ``scaling``: the figures; ``notes``: what is read first."""

    title: str
    scaling: Scaling
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """What was scaled."""
        return f"<ScalingReport of {self.title} on {self.scaling.name}; print it to read it>"

    def document(self) -> Document:
        """The scaling table."""
        return Document(
            f"Windtunnel scaling: {self.title}",
            "modelled, not measured",
            self.notes,
            (scaling_section(self.scaling),),
        )

    def charts(self) -> tuple[Chart, ...]:
        """``strong`` or ``weak``: throughput and cost."""
        return scaling_charts([self.scaling])

    def _no_charts(self) -> str:
        return f"the job cannot run on any of these numbers of {self.scaling.name}."

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "title": self.title,
            "notes": list(self.notes),
            **scaling_data(self.scaling),
        }


def scaling(
    job: Subject,
    instance: str = LARGEST_NEURON,
    counts: Sequence[int] = COUNTS,
    mode: Literal["strong", "weak"] = "strong",
    full_scale: FullScale | None = None,
    *,
    prices: PriceBook | None = None,
    on: date | None = None,
    user_calibration: CalibrationStore | None = STORED,
    precisions: Precisions = AS_THE_JOB,
    global_batch: float | None = None,
    instance_count: int | None = None,
) -> ScalingReport:
    """One job on several numbers of instances: step, throughput, speed-up, efficiency, hours, cost.

    The arguments are those of `compare`, and of `report_for_job`; ``strong`` keeps the global batch of the
    smallest number of instances, ``weak`` the samples of each worker. ``global_batch``: another one, that of
    ``instance_count`` instances. A number on which the job cannot run keeps its row, with the reason.

    Raises:
        InvalidInput: no counts, one below 1, or a mode that is none; else as `compare`.
    """
    title, workload = read(job)
    book, _ = book_and_notes(prices, on)
    own = loaded(user_calibration)
    table = scale_workload(
        workload,
        instance,
        counts,
        mode,
        full_scale,
        prices=book,
        on=on,
        trn_precision=precisions.trn,
        gpu_precision=precisions.gpu,
        corrections=own.corrections,
        global_batch=global_batch,
        instance_count=instance_count,
    )
    return ScalingReport(
        title, table, own.notes(row.estimate for row in table.rows if row.estimate is not None)
    )


def scaling_title(table: Scaling) -> str:
    """The title of a table's section."""
    return f"Scaling on {table.name}"


def scaling_section(table: Scaling) -> Section:
    """Each number of instances: what a step takes, what it gains, what the job costs."""
    base, running = table.base, [row for row in table.rows if row.estimate is not None]
    notes = _grouped(
        "Not possible", [(row.instances, row.reason) for row in table.rows if row.reason], len(table.rows)
    )
    unfit = [
        (row.instances, "the job does not fit the memory of a worker") for row in running if not row.fits
    ]
    notes += _grouped("DOES NOT FIT", unfit, len(running))
    outside = [
        (row.instances, reason)
        for row in running
        for reason in (row.estimate.range_check.outside if row.estimate is not None else ())
    ]
    widened = _grouped("OUTSIDE THE CALIBRATED RANGE", outside, len(running))
    notes += [f"{note} Intervals are widened with the distance." for note in widened]
    if table.instance.trains_alone and any(row.instances > 1 for row in running):
        notes.append(f"NOT ON AWS: {no_cluster(table.instance)}")
    price = next((row.cost.price for row in table.rows if row.cost is not None), None)
    if price is not None:
        notes.append(
            f"Cost: at {fmt.price(price.usd_per_hour)} an hour of an instance ({price.region}, {price.status}, "
            f"valid from {price.effective_from})."
        )
    elif running:
        notes.append(f"No price of {table.name} is in the book, so there is no cost.")
    if any(row.estimate is not None and row.estimate.training is not None for row in running):
        notes.append(
            "What a description leaves to the memory (passes, recomputation, split) is searched for each row: where "
            "more instances allow a faster one, effic. may exceed 100 %."
        )
    notes += _known_speeds(running)
    if base is not None:
        notes.append(
            f"Speed-up and efficiency are those of throughput, beside "
            f"{fmt.many(base.instances, 'instance')}. Hours and cost hold the fixed costs too."
        )
    return Section(
        scaling_title(table),
        "modelled",
        f"{table.instance.core_count} {table.instance.core_name}s each; {_MODES[table.mode]}",
        ("batch", "step", "samples/s", "speed-up", "effic.", "hours", "cost", "interval, $"),
        tuple(_row(row, base) for row in table.rows),
        tuple(notes),
        label_header="nodes",
    )


def _known_speeds(rows: Sequence[ScalingRow]) -> list[str]:
    """Notes where the software's speed is known on some rows only, or differs: a jump that the job does not cause."""
    speeds = {row.instances: row.estimate.software_speed for row in rows if row.estimate is not None}
    if len(set(speeds.values())) < 2:
        return []
    told = dict.fromkeys(speeds.values())
    each = [
        f"{'not known' if speed is None else f'{speed:.2f} times the model'} on "
        f"{', '.join(f'{count:,}' for count, its in speeds.items() if its == speed)}"
        for speed in told
    ]
    return [
        f"Published speed of the software: {'; '.join(each)}. What changes there is not due to the instances."
    ]


def _grouped(title: str, found: Sequence[tuple[int, str]], rows: int) -> list[str]:
    """Each reason once, with the numbers of instances it holds for; reasons that differ only in numbers are one."""
    counts: dict[str, list[int]] = {}
    first: dict[str, str] = {}
    for count, reason in found:
        kind = re.sub(r"\d+", "#", reason)
        counts.setdefault(kind, []).append(count)
        first.setdefault(kind, reason)
    return [
        f"{title} on {'all' if len(each) == rows else numbers(each)}: {first[kind]}."
        for kind, each in counts.items()
    ]


def _row(row: ScalingRow, base: ScalingRow | None) -> Row:
    batch = "-" if row.global_batch is None else fmt.plain(row.global_batch)
    runs = row.fits or base is None or not base.fits
    if row.estimate is None or row.speed_up is None or row.efficiency is None or not runs:
        return Row(f"{row.instances:,}", (batch, "no"))
    item, cost = row.estimate, row.cost
    return Row(
        f"{row.instances:,}",
        (
            batch,
            fmt.modelled_seconds(item.step.total_s),
            fmt.significant(item.samples_per_s),
            f"{fmt.significant(row.speed_up, 3)}",
            fmt.percent(row.efficiency),
            fmt.significant(item.billable_s / 3600),
            "no price" if cost is None else fmt.dollars(cost.usd),
            "" if cost is None else f"{fmt.significant(cost.low_usd)}-{fmt.significant(cost.high_usd)}",
        ),
    )
