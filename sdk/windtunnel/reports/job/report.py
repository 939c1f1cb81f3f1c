"""What a job took here, and what it would take and cost on trn1 and p4d.

    job.report(full_scale=FullScale(train_samples=3_600_000, epochs=1, evaluation_samples=400_000))

Measured and modelled figures are kept apart: each modelled one has its interval, each cost its price and the price's
date.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from windtunnel.priceperf import (
    BatchRule,
    Comparison,
    FullScale,
    NotCalibrated,
    Precision,
    PriceBook,
    PricePerfError,
    Workload,
    compare,
)
from windtunnel.priceperf.errors import NothingTrained
from windtunnel.priceperf.workload.counters import Counters
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Section
from windtunnel.rendering.plots.chart import Chart
from windtunnel.rendering.plots.style import ThemeName
from windtunnel.rendering.report import Report
from windtunnel.reports.diagnostics import Diagnostics, for_report
from windtunnel.reports.failure import memory_advice
from windtunnel.reports.job import measured as measured_part
from windtunnel.reports.modelled import sections as modelled_part
from windtunnel.reports.modelled.answer import TITLE, Screen, answer_section, screen
from windtunnel.reports.modelled.answer_data import answer_data
from windtunnel.reports.modelled.breakdown_chart import breakdown_chart
from windtunnel.reports.modelled.cost_chart import cost_chart
from windtunnel.reports.modelled.data import modelled
from windtunnel.reports.modelled.instances import shown_beside
from windtunnel.user_calibration import CalibrationStore, loaded

SCHEMA = "windtunnel.report/1"
_FAILED_EARLY = "the job failed before a training step had ended. Correct the script, and rehearse it again."


class ReportableJob(Protocol):
    """What a report needs of a job."""

    def describe(self) -> Mapping[str, Any]:
        """The job in the form of DescribeTrainingJob's answer."""

    def counters(self) -> Mapping[str, Any] | None:
        """The job's ``counters.json``; None, or `JobNotFinished`, where it has none, as a job on AWS."""


@dataclass(frozen=True)
class Precisions:
    """Number formats of products that a reader chose. None: the job's; on GPUs the fastest that one line can set."""

    trn: Precision | None = None
    gpu: Precision | None = None


AS_THE_JOB = Precisions()


@dataclass(eq=False, repr=False)
class PricePerformance(Report):
    """The report of one job.

    Attributes:
        measured: figures of the run, by name with units; nothing modelled.
        workload: what the job is modelled from.
        comparison: what is modelled; None when there is nothing to model from.
        full_scale: the size of the real job; None: as rehearsed.
        unavailable: why there is no comparison.
        prices: the price list.
        diagnostics: what to change in the script; None without counters.
        notes: what is read first: that the figures hold the user's own calibration.
        price_notes: the day of the prices, and how old the newest price fetched from AWS is.
    """

    measured: Mapping[str, Any]
    workload: Workload | None
    comparison: Comparison | None
    full_scale: FullScale | None
    unavailable: str | None
    prices: PriceBook
    diagnostics: Diagnostics | None = None
    price_notes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """The job's name and how much is known."""
        part = "measured only" if self.comparison is None else "measured and modelled"
        return f"<PricePerformance of {self.measured.get('job', 'a job')}: {part}; print it to read it>"

    def document(self) -> Document:
        facts = self.measured
        sections: list[Section] = []
        if self.comparison is not None and self.screen is not None:
            sections.append(answer_section(self.screen, self.comparison, self._lines_above))
        elif facts["where"] == "local":
            notes = (*self._failed, f"No answer: {self.unavailable}")
            sections.append(Section(TITLE, "modelled", notes=notes, first=True))
        if self.diagnostics is not None and (change := for_report(self.diagnostics)) is not None:
            sections.append(change)
        sections.append(measured_part.section(facts))
        bill = measured_part.bill(facts, self.prices)
        if bill is not None:
            sections.append(bill)
        if self.comparison is not None and self.workload is not None:
            sections += modelled_part.sections(self.comparison, self.workload, self.full_scale, self.prices)
        if self.price_notes and (self.comparison is not None or bill is not None):
            sections.append(Section("Prices", "text", notes=self.price_notes))
        status = f", {facts['status']}" if "status" in facts else ""
        return Document(
            f"Windtunnel report: {facts.get('job', 'counters')}{status}",
            measured_part.subtitle(facts),
            self._told_first,
            tuple(sections),
            self._rest,
        )

    @property
    def _rest(self) -> str:
        rule = self.comparison.batch_rule if self.comparison else "rehearsed"
        on_aws = self.measured["where"] == "aws"  # asked for by --aws and its name, or by --describe
        command = "windtunnel report" if on_aws else f"windtunnel report {self.measured.get('job', 'JOB')}"
        # Without these arguments the command gives other figures.
        given = self.full_scale is not None or rule != "rehearsed" or on_aws or self._has_chosen_precision
        more = ", with what else was given here; " if given else ", "
        return f"The rest: {command} --full{more}report.to_text(full=True)"

    @property
    def _has_chosen_precision(self) -> bool:
        """Whether the precision of an instance is not the job's."""
        if self.comparison is None or self.workload is None:
            return False
        usual = self.workload.precisions
        return any(item.precision != usual(item.instance)[0] for item in self.comparison.estimates)

    @cached_property
    def screen(self) -> Screen | None:
        """The answer in words; None where nothing is modelled."""
        if self.comparison is None or self.workload is None:
            return None
        return screen(self.comparison, self.workload, self.full_scale, self.prices, self.diagnostics)

    @property
    def _failed(self) -> tuple[str, ...]:
        """Why the job failed, and what to do if memory ran out; in short, as the whole stands below. Else empty."""
        reason, short = self.measured.get("failure_reason"), self.measured.get("failure")
        if reason is None or short is None:
            return ()
        advice = memory_advice(reason)
        shown = short if "ErrorMessage" in reason else reason.removesuffix(advice)
        return tuple(fmt.shortened(text, 2) for text in (f"It failed: {shown}", advice) if text)

    @property
    def _told_first(self) -> tuple[str, ...]:
        """What stands above the answer: the notes; before them, where there is an answer, why the job failed."""
        return self.notes if self.comparison is None else (*self._failed, *self.notes)

    @property
    def _lines_above(self) -> int:
        """Lines of the first screen besides the answer: at most two a note, and those of `_rest` beyond its first."""
        return 2 * len(self._told_first) + fmt.lines_of(self._rest) - 1

    def cost_line(self, instance_type: str | None) -> str | None:
        """What the job cost on AWS, or is modelled to cost at the newest prices, in one line; None where not known."""
        bill = measured_part.bill(self.measured, self.prices)
        if bill is not None:
            return next((row.cells[0] for row in bill.rows if row.style == "total"), None)
        if self.comparison is None or not (self.comparison.costs and self.comparison.is_known):
            return None
        _, costs = self.comparison.costs[-1]
        own = (item for item in zip(self.comparison.estimates, costs, strict=True) if item[0].fits)
        cost = next((cost for item, cost in own if item.instance.name == instance_type), None)
        return None if cost is None else modelled_part.cost_line(cost)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: ``answer``, ``measured``, ``modelled`` (None with ``unavailable`` saying why)."""
        return {
            "schema": SCHEMA,
            "answer": None
            if self.screen is None or self.comparison is None
            else answer_data(self.screen, self.comparison),
            "measured": self.measured,
            "modelled": None
            if self.comparison is None or self.workload is None
            else modelled(self.comparison, self.full_scale and self.workload.sized(self.full_scale)),
            "unavailable": self.unavailable,
            "notes": list(self.notes),
            "price_notes": list(self.price_notes),
            "diagnostics": None
            if self.diagnostics is None
            else [asdict(found) for found in self.diagnostics],
        }

    def charts(self) -> tuple[Chart, ...]:
        """``cost`` and ``breakdown``; none when nothing is modelled."""
        if self.comparison is None:
            return ()
        job = str(self.measured.get("job", "the job"))
        if any(item.correction for item in self.comparison.estimates):
            job += " (YOUR CALIBRATION)"
        return (cost_chart(self.comparison, job), breakdown_chart(self.comparison))

    def plot(self, kind: str | None = "cost", theme: ThemeName = "light") -> Any:
        """A chart as a matplotlib Figure, by default cost bars with intervals. See `Report.plot`."""
        return super().plot(kind, theme)

    def _no_charts(self) -> str:
        return str(self.unavailable)


def report_of(
    describe: Mapping[str, Any],
    counters: Mapping[str, Any] | None,
    full_scale: FullScale | None,
    instances: Sequence[str] | None,
    batch: BatchRule,
    book: PriceBook,
    price_notes: tuple[str, ...],
    user_calibration: CalibrationStore | None,
    *,
    instance_count: int | None = None,
    precisions: Precisions = AS_THE_JOB,
) -> PricePerformance:
    """The report of a described job with its counters; either may be empty.

    The arguments are those of `for_job.report_for_job`; ``price_notes``: notes on the prices in ``book``.
    """
    typed, workload, reason = None, None, "the job left no counters."
    try:
        if counters is not None:
            typed = Counters.read(counters)
            workload = Workload.from_counters(typed)
    except PricePerfError as error:
        early = isinstance(error, NothingTrained) and describe.get("TrainingJobStatus") == "Failed"
        reason = _FAILED_EARLY if early else str(error)
    facts = measured_part.collect(describe, typed)
    found = None if typed is None else Diagnostics(typed)
    measured_only = PricePerformance(facts, None, None, full_scale, reason, book, found, price_notes)
    if len({group["instance_type"] for group in facts.get("instance_groups", [])}) > 1:
        reason = "the job ran on instance groups of several types, but only one type can be modelled."
        return replace(measured_only, unavailable=reason)
    if workload is None or typed is None:
        return measured_only
    if len(facts.get("instance_groups", [])) > 1 and (why := _some_train(typed)):
        return replace(measured_only, unavailable=why)
    calibration = loaded(user_calibration)
    try:
        comparison = compare(
            workload,
            shown_beside(typed.instance_type, instances),
            full_scale,
            prices=book,
            batch=batch,
            instance_count=instance_count,
            trn_precision=precisions.trn,
            gpu_precision=precisions.gpu,
            corrections=calibration.corrections,
        )
    except NotCalibrated as error:
        return replace(measured_only, workload=workload, unavailable=str(error))
    if book.as_of is not None and not comparison.costs:
        book.price(comparison.estimates[0].instance.name)  # raises, and says what is missing
    notes = calibration.notes(comparison.estimates)
    return replace(measured_only, workload=workload, comparison=comparison, unavailable=None, notes=notes)


def _some_train(counters: Counters) -> str | None:
    """Why a job whose groups do not all train is not modelled: torchrun starts workers only in those it names."""
    workers, on_one = counters.world_size or 1, counters.cores_used or 1
    if workers >= on_one * counters.instance_count:
        return None
    return (
        f"the job has {workers} workers, {on_one} on an instance, and not all {counters.instance_count} instances of "
        "its groups train. Only those that train alike are modelled: rehearse the group that trains as a job of its "
        "own."
    )
