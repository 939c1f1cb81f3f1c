"""What a job took here, and what it would take and cost on trn1 and p4d.

    job.report(full_scale=FullScale(train_samples=3_600_000, epochs=1, evaluation_samples=400_000))

Measured and modelled figures stand apart, each modelled one with its interval,
each cost with its price and the price's date.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Any, Protocol

from windtunnel.errors import JobNotFinished, ServiceCallFailed
from windtunnel.priceperf import (
    BatchRule,
    Comparison,
    CountedWorkload,
    FullScale,
    NotCalibrated,
    PriceBook,
    PricePerfError,
    PublishedComparison,
    compare,
    instance_type,
    published_comparison,
)
from windtunnel.priceperf.published.bert_jobs_predicted import Predictions, predictions
from windtunnel.prices.cache import book_and_notes
from windtunnel.rehearsal import Rehearsal, trn_precision
from windtunnel.rendering.document import Document, Section
from windtunnel.rendering.report import DrawnDocument
from windtunnel.reports import published as published_part
from windtunnel.reports.diagnostics import sections as diagnosed
from windtunnel.reports.job import measured as measured_part
from windtunnel.reports.modelled import sections as modelled_part
from windtunnel.reports.validation import sections as validated_part
from windtunnel.user_calibration import STORED, CalibrationStore, loaded

if TYPE_CHECKING:
    from windtunnel.priceperf.calibration.accuracy import Validation
    from windtunnel.rendering.plots.chart import Chart
    from windtunnel.rendering.plots.style import ThemeName
    from windtunnel.reports.diagnostics.report import Diagnostics

__all__ = [
    "DrawnDocument",
    "FullScale",
    "PricePerformance",
    "PublishedReport",
    "ReportableJob",
    "ValidationReport",
    "published",
    "report_for_counters",
    "report_for_job",
    "validated",
]

SCHEMA = "windtunnel.report/1"
GPU_INSTANCE = "ml.p4d.24xlarge"
LARGE_NEURON_INSTANCE = "ml.trn1.32xlarge"


class ReportableJob(Protocol):
    """What a report needs of a job."""

    def describe(self) -> Mapping[str, Any]:
        """The job as DescribeTrainingJob shapes it."""
        ...

    def counters(self) -> Mapping[str, Any] | None:
        """The job's ``counters.json``; None (or `JobNotFinished`) when it has none, as a job on AWS."""
        ...


class PricePerformance(DrawnDocument):
    """The report of one job.

    Attributes:
        measured: figures of the run, by name with units; nothing modelled.
        comparison: what is modelled; None when there is nothing to model from.
        unavailable: why there is no comparison.
        diagnostics: what to change in the script; None without counters.
        notes: what is read first: the user's own calibration, where it is in the figures.
        price_notes: of which day the prices are, and how old the newest one fetched from AWS is.
    """

    def __init__(
        self,
        measured: Mapping[str, Any],
        workload: CountedWorkload | None,
        comparison: Comparison | None,
        full_scale: FullScale | None,
        unavailable: str | None,
        prices: PriceBook,
        diagnostics: Diagnostics | None = None,
        price_notes: Sequence[str] = (),
        notes: tuple[str, ...] = (),
    ) -> None:
        """Built by `report_for_job` and `report_for_counters`."""
        self.price_notes = tuple(price_notes)
        self.notes = notes
        self.measured = dict(measured)
        self.comparison = comparison
        self.full_scale = full_scale
        self.unavailable = unavailable
        self._workload = workload
        self._prices = prices
        self.diagnostics = diagnostics

    def __repr__(self) -> str:
        """The job's name and how much is known."""
        part = "measured only" if self.comparison is None else "measured and modelled"
        return f"<PricePerformance of {self.measured.get('job', 'a job')}: {part}; print it to read it>"

    def document(self) -> Document:
        """The report as sections."""
        facts = self.measured
        sections: list[Section] = [measured_part.section(facts)]
        bill = measured_part.bill(facts, self._prices)
        if bill is not None:
            sections.append(bill)
        if self.diagnostics is not None and (change := diagnosed.for_report(self.diagnostics)) is not None:
            sections.append(change)
        headline = self.notes
        if self.comparison is not None and self._workload is not None:
            headline += modelled_part.not_modelled(self.comparison)
            headline += modelled_part.headline(self.comparison, self.full_scale)
            sections += modelled_part.sections(self.comparison, self._workload, self.full_scale)
        elif facts["where"] == "local":
            sections.append(Section("Modelled", "modelled", notes=(f"Nothing: {self.unavailable}",)))
        if self.price_notes and (self.comparison is not None or bill is not None):
            sections.append(Section("Prices", "text", notes=self.price_notes))
        status = f", {facts['status']}" if "status" in facts else ""
        return Document(
            f"Windtunnel report: {facts.get('job', 'counters')}{status}",
            measured_part.subtitle(facts),
            headline,
            tuple(sections),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data: ``measured``, ``modelled`` (None with ``unavailable`` saying why)."""
        from windtunnel.reports.modelled.data import modelled

        return {
            "schema": SCHEMA,
            "measured": self.measured,
            "modelled": None if self.comparison is None else modelled(self.comparison, self.full_scale),
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
        from windtunnel.reports.modelled.breakdown_chart import breakdown_chart
        from windtunnel.reports.modelled.cost_chart import cost_chart

        job = str(self.measured.get("job", "the job"))
        if any(item.correction for item in self.comparison.estimates):
            job += " (YOUR CALIBRATION)"
        return (cost_chart(self.comparison, job), breakdown_chart(self.comparison))

    def plot(self, kind: str | None = "cost", theme: ThemeName = "light") -> Any:
        """A chart as a matplotlib Figure, by default cost bars with intervals. See `DrawnDocument.plot`."""
        return super().plot(kind, theme)

    def _no_charts(self) -> str:
        return str(self.unavailable)


class PublishedReport(DrawnDocument):
    """AWS's published table beside its own arithmetic, and as modelled from a rehearsal of that job.

    Attributes:
        table: the published figures and what follows from them.
        predicted: the same jobs, modelled.
    """

    def __init__(self, table: PublishedComparison, predicted: Predictions) -> None:
        """Built by `published`."""
        self.table = table
        self.predicted = predicted

    def document(self) -> Document:
        """The report as sections."""
        return published_part.document(self.table, self.predicted)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return published_part.data(self.table, self.predicted)


class ValidationReport(DrawnDocument):
    """The price model held against published rows. ``validation`` holds the figures."""

    def __init__(self, validation: Validation) -> None:
        """Built by `validated`."""
        self.validation = validation

    def document(self) -> Document:
        """The report as sections."""
        return validated_part.document(self.validation)

    def charts(self) -> tuple[Chart, ...]:
        """``published``: predicted against published, and ``errors``, row by row."""
        from windtunnel.reports.validation.charts import validation_charts

        return validation_charts(self.validation)

    def _no_charts(self) -> str:
        return "no row has both a prediction and a published figure."

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return validated_part.data(self.validation)


def report_for_job(
    job: ReportableJob,
    full_scale: FullScale | None = None,
    *,
    instances: Sequence[str] | None = None,
    batch: BatchRule = "rehearsed",
    prices: PriceBook | None = None,
    prices_on: date | None = None,
    rehearsal: Rehearsal | None = None,
    user_calibration: CalibrationStore | None = STORED,
) -> PricePerformance:
    """The report of a job that ran here, or on AWS: its bill, and with ``rehearsal`` beside its prediction.

    Blocks while the job is described and its counters are fetched; idempotent.

    Args:
        job: anything with ``describe()`` and ``counters()``.
        full_scale: the real job behind the rehearsed sample; None: exactly what was rehearsed.
        instances: what to model; default: the job's own instance, ml.trn1.32xlarge, ml.p4d.24xlarge.
        batch: which batch each instance gets (`windtunnel.priceperf.BatchRule`); ``"rehearsed"``: Neuron
            instances keep the samples a core, GPUs get the global batch of the largest of them.
        prices: another price book than the built-in one with what `windtunnel prices refresh` has fetched.
        prices_on: the day at whose prices everything modelled is priced; None: at each day on which a price
            changed. A bill of AWS keeps the prices of the day on which the job ran.
        rehearsal: of a job on AWS: a job that ran here, its counters or their file; then ``full_scale`` is the
            size of the job on AWS.
        user_calibration: whose corrections of step times are used, and named first; None: none.

    Raises:
        UnknownInstance: one of ``instances`` has no figures.
        PriceUnknown: the book has no price of any of them on that day.
        JobNotFinished: the job still runs.
        ConfigurationError: ``rehearsal`` cannot be read, or the job it is for did not run on AWS.
    """
    describe = job.describe()
    book, notes = book_and_notes(prices, prices_on)
    if rehearsal is None:
        counters = _counters(job, describe)
        return _report(describe, counters, full_scale, instances, batch, book, notes, user_calibration)
    from windtunnel.reports.aws_job.report import FlightReport

    flown = FlightReport.of(describe, rehearsal, full_scale, instances, batch, book, user_calibration)
    flown.price_notes = notes
    return flown


def report_for_counters(
    counters: Mapping[str, Any],
    full_scale: FullScale | None = None,
    *,
    instances: Sequence[str] | None = None,
    batch: BatchRule = "rehearsed",
    prices: PriceBook | None = None,
    prices_on: date | None = None,
    user_calibration: CalibrationStore | None = STORED,
) -> PricePerformance:
    """The same from a ``counters.json`` alone.

    Raises:
        InvalidCounters: they cannot be modelled; the message names the field.
        UnknownInstance: one of ``instances`` has no figures.
        PriceUnknown: the book has no price of any of them on ``prices_on``.
    """
    CountedWorkload.from_counters(counters)
    book, notes = book_and_notes(prices, prices_on)
    return _report({}, counters, full_scale, instances, batch, book, notes, user_calibration)


def published() -> PublishedReport:
    """AWS's price/performance table of trn1 against p4d, recomputed, and predicted from a rehearsal."""
    return PublishedReport(published_comparison(), predictions())


def validated(table: Sequence[Mapping[str, Any]] | None = None) -> ValidationReport:
    """The price model against published throughputs, with its errors in sample and left out.

    Args:
        table: rows with the columns of the published tables, as text; None: the built-in rows. A row
            that cannot be predicted carries the reason.
    """
    from windtunnel.priceperf.calibration.accuracy import validate_built_in, validate_rows
    from windtunnel.priceperf.calibration.row_reader import read_rows

    return ValidationReport(validate_built_in() if table is None else validate_rows(read_rows(table)))


def _counters(job: ReportableJob, describe: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """None for an ended job that left none; a job still running raises its own `JobNotFinished`."""
    try:
        return job.counters()
    except (JobNotFinished, ServiceCallFailed) as error:
        # A job on AWS has no counters, and its bucket need not be ours to read.
        local = measured_part.LOCAL_ACCOUNT in str(describe.get("TrainingJobArn"))
        ended = describe.get("TrainingJobStatus") in ("Completed", "Failed", "Stopped")
        if ended and not (local and isinstance(error, ServiceCallFailed)):
            return None
        raise


def _report(
    describe: Mapping[str, Any],
    counters: Mapping[str, Any] | None,
    full_scale: FullScale | None,
    instances: Sequence[str] | None,
    batch: BatchRule,
    book: PriceBook,
    price_notes: Sequence[str],
    user_calibration: CalibrationStore | None,
) -> PricePerformance:
    facts = measured_part.collect(describe, counters)
    if counters is None:
        return PricePerformance(
            facts, None, None, full_scale, "the job left no counters.", book, None, price_notes
        )
    found = _diagnostics(counters)
    if len({group["instance_type"] for group in facts.get("instance_groups", [])}) > 1:
        reason = "the job ran on instance groups of several types, and only one type is modelled."
        return PricePerformance(facts, None, None, full_scale, reason, book, found, price_notes)
    try:
        workload = CountedWorkload.from_counters(counters)
    except PricePerfError as error:
        return PricePerformance(facts, None, None, full_scale, str(error), book, found, price_notes)
    calibration = loaded(user_calibration)
    try:
        comparison = compare(
            workload,
            shown_beside(workload.instance_type, instances),
            full_scale,
            prices=book,
            batch=batch,
            trn_precision=trn_precision(describe),
            corrections=calibration.corrections,
        )
    except NotCalibrated as error:
        return PricePerformance(facts, workload, None, full_scale, str(error), book, found, price_notes)
    if book.as_of is not None and not comparison.costs:
        book.price(comparison.estimates[0].instance.name)  # says what is missing
    own = calibration.notes(comparison.estimates)
    return PricePerformance(facts, workload, comparison, full_scale, None, book, found, price_notes, own)


def shown_beside(own: str, instances: Sequence[str] | None) -> tuple[str, ...]:
    """What is modelled: what was asked for, or the job's own instance, the largest trn1 and p4d."""
    if instances:
        # A rehearsal is of a SageMaker job, so its prices are SageMaker's, with or without "ml." in the names.
        return tuple(instance_type(name).name for name in instances)
    return tuple(dict.fromkeys((own, large_neuron_instance(own), GPU_INSTANCE)))


def large_neuron_instance(own: str) -> str:
    """What a job is compared on by default: its own instance where that has as many of the same chips."""
    large = instance_type(LARGE_NEURON_INSTANCE)
    return own if instance_type(own).same_chips_as(large) else large.name


def _diagnostics(counters: Mapping[str, Any]) -> Diagnostics:
    """Imported late: diagnostics draw themselves with what is defined here."""
    from windtunnel.reports.diagnostics.report import diagnostics_of

    return diagnostics_of(counters)
