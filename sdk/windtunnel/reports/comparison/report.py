"""One job on several instances: times, costs, and which is cheapest.

    windtunnel.compare(job, ["ml.trn1.32xlarge", "ml.p4d.24xlarge"], FullScale(train_samples=3_600_000))
    windtunnel.scaling(windtunnel.Workload.transformer("Llama2-7B", ...), "ml.trn1.32xlarge", ...)

Both take a rehearsed job, its counters, or a described `Workload`, and return a report that prints itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

from windtunnel.priceperf import (
    BatchRule,
    Comparison,
    Decision,
    DescribedWorkload,
    FullScale,
    PriceBook,
    Scaling,
    SensitivityRow,
    Workload,
    answers,
    sensitivity,
)
from windtunnel.priceperf import compare as compare_workload
from windtunnel.priceperf import scaling as scale_workload
from windtunnel.priceperf.money.scaling import COUNTS, ScalingMode
from windtunnel.prices.cache import book_and_notes
from windtunnel.rendering.document import Document
from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.plots.style import ThemeName
from windtunnel.rendering.report import Report
from windtunnel.reports.assumed import of_the_model, told
from windtunnel.reports.comparison import sections as compared
from windtunnel.reports.comparison.data import comparison_data, scaling_data
from windtunnel.reports.comparison.scaling import scaling_section, scaling_title
from windtunnel.reports.comparison.scaling_chart import scaling_charts
from windtunnel.reports.comparison.subject import Subject, read
from windtunnel.reports.job.report import AS_THE_JOB, Precisions
from windtunnel.reports.modelled.answer import Screen, answer_section, screen
from windtunnel.reports.modelled.answer_data import answer_data
from windtunnel.reports.modelled.breakdown_chart import breakdown_chart
from windtunnel.reports.modelled.cost_chart import cost_chart
from windtunnel.reports.modelled.instances import default_instances
from windtunnel.user_calibration import STORED, CalibrationStore, loaded

SCHEMA = "windtunnel.comparison/1"


@dataclass(eq=False, repr=False)
class ComparisonReport(Report):
    """One job on several instances.

    Attributes:
        comparison: times, costs and intervals, with one estimate for each instance.
        scalings: a scaling table for each instance, where asked for.
        price_notes: the day of the prices, and how old the newest price fetched from AWS is.
        notes: what is read first: that the figures hold the user's own calibration.
        assumed: what the caller did not give, in words.
        stated: the size of the job as the caller gave it; None: ``full_scale`` is what the rehearsal tells.
    """

    title: str
    workload: Workload
    comparison: Comparison
    full_scale: FullScale
    prices: PriceBook
    on: date | None
    scalings: tuple[Scaling, ...] = ()
    price_notes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    stated: FullScale | None = None

    def __repr__(self) -> str:
        """What was compared."""
        names = ", ".join(item.name for item in self.comparison.estimates)
        return f"<ComparisonReport of {self.title} on {names}; print it to read it>"

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """One for each date of prices: which instance is cheapest, how surely, and at which price that turns."""
        return tuple(found.decided for found in answers(self.comparison))

    @cached_property
    def sensitivity(self) -> tuple[SensitivityRow, ...]:
        """Costs with one thing changed at a time, at the newest prices compared. Computed when first asked for."""
        days = [on for on, _ in self.comparison.costs]
        day = self.on or (max(days) if days else None)
        return sensitivity(self.workload, self.comparison, self.full_scale, prices=self.prices, on=day)

    def document(self) -> Document:
        above = (*self.notes, *told(self.assumed))
        first = answer_section(self.screen, self.comparison, 2 * len(above))
        parts = compared.sections(
            self.comparison,
            self.sensitivity,
            self.workload,
            self.full_scale,
            self.prices,
            self.price_notes,
        )
        return Document(
            f"Windtunnel comparison: {self.title}",
            "modelled, not measured",
            above,
            (first, *(replace(scaling_section(table), first=True) for table in self.scalings), *parts),
            "The rest: --full, report.to_text(full=True)",
        )

    @cached_property
    def screen(self) -> Screen:
        """The answer in words."""
        return screen(self.comparison, self.workload, self.stated, self.prices)

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "title": self.title,
            "answer": answer_data(self.screen, self.comparison),
            **comparison_data(self.comparison, self.sensitivity, self.workload, self.full_scale),
            "notes": list(self.notes),
            "assumed": list(self.assumed),
            "price_notes": list(self.price_notes),
            "scaling": [scaling_data(table) for table in self.scalings],
        }

    def charts(self) -> tuple[Chart, ...]:
        """``cost`` and ``breakdown``; with scaling tables also ``strong`` or ``weak``."""
        scaled_after = scaling_title(self.scalings[-1]) if self.scalings else ""
        title = f"{self.title} (YOUR CALIBRATION)" if self.notes else self.title
        return (
            cost_chart(self.comparison, title),
            breakdown_chart(self.comparison),
            *scaling_charts(self.scalings, scaled_after),
        )

    def plot(self, kind: str | None = "cost", theme: ThemeName = "light") -> Any:
        """A chart as a matplotlib Figure, by default cost bars with intervals. See `Report.plot`."""
        return super().plot(kind, theme)


def compare(
    job: Subject,
    instances: Sequence[str | tuple[str, int]] | None = None,
    full_scale: FullScale | None = None,
    *,
    instance_count: int | None = None,
    batch: BatchRule = "rehearsed",
    prices: PriceBook | None = None,
    on: date | None = None,
    scaling: ScalingMode | None = None,
    counts: Sequence[int] = COUNTS,
    user_calibration: CalibrationStore | None = STORED,
    precisions: Precisions = AS_THE_JOB,
) -> ComparisonReport:
    """Time, cost and winner of one job on several instances, each with its interval.

    Blocks while a job is described and its counters are fetched; idempotent.

    Args:
        job: a job that has run here, its counters, or a `Workload` (see `Workload.transformer`).
        instances: names, or pairs of a name and a number of instances; ``ml.trn1.32xlarge`` is priced as SageMaker
            training, ``trn1.32xlarge`` as EC2, ``trn1`` is the family's largest, as SageMaker training. None: the job's
            own, ml.trn1.32xlarge, ml.p4d.24xlarge.
        full_scale: the real job; None: exactly what was rehearsed. A described job needs it.
        instance_count: instances of each where ``instances`` names no number; None: as many as were rehearsed.
        batch: which batch each instance gets (`windtunnel.priceperf.BatchRule`), or the global batch as a number.
        prices: another price book than the built-in one with what `windtunnel prices refresh` has fetched.
        on: only prices in force on that day; None: each date from which prices hold.
        scaling: also a table of ``strong`` or ``weak`` scaling for each instance.
        counts: the numbers of instances in these tables.
        user_calibration: the calibration whose corrections of a rehearsed job's step times are used, and named first;
            None: none.
        precisions: the number formats in which matrix products run.

    Raises:
        JobNotFinished: the job runs, or has left no counters.
        InvalidCounters: its counters cannot be modelled.
        UnknownInstance: an instance type without figures.
        PriceUnknown: the book has no price of any of them on that day.
        InvalidInput: an argument out of its range, or a job that cannot run on one of the instances.
    """
    title, workload = read(job)
    chosen = default_instances(workload) if instances is None else instances
    size = workload.sized(full_scale)
    book, price_notes = book_and_notes(prices, on)
    own = loaded(user_calibration)
    comparison = compare_workload(
        workload,
        chosen,
        full_scale,  # not ``size``: a job whose size the rehearsal could not tell has no answer
        prices=book,
        instance_count=instance_count,
        batch=batch,
        on=on,
        trn_precision=precisions.trn,
        gpu_precision=precisions.gpu,
        corrections=own.corrections,
    )
    if on is not None and not any(cost for _, costs in comparison.costs for cost in costs):
        book.price(comparison.estimates[0].name, on)  # raises, and says what is missing
    assumed = []
    if isinstance(workload, DescribedWorkload):
        assumed = of_the_model(workload.architecture, workload.sequence_length)
    tables = [
        scale_workload(
            workload,
            item.name,
            counts,
            scaling,
            size,
            prices=book,
            on=on,
            trn_precision=precisions.trn,
            gpu_precision=precisions.gpu,
            corrections=own.corrections,
            global_batch=item.global_batch,
            instance_count=item.instance_count,
        )
        for item in {item.name: item for item in comparison.estimates}.values()
        if scaling is not None
    ]
    return ComparisonReport(
        title,
        workload,
        comparison,
        size,
        book,
        on,
        tuple(tables),
        price_notes,
        own.notes(comparison.estimates),
        tuple(assumed),
        full_scale,
    )
