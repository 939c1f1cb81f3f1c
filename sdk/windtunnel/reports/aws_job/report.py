"""The report of a job that ran on AWS: its bill, and its prediction beside what it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from windtunnel.errors import ConfigurationError
from windtunnel.priceperf import (
    BatchRule,
    Corrections,
    CountedWorkload,
    Estimate,
    Evidence,
    Flight,
    FlightCheck,
    FullScale,
    Price,
    PriceBook,
    PricePerfError,
    check_flight,
    compare,
    evidence_of,
)
from windtunnel.rehearsal import Rehearsal, predicted, rehearsed
from windtunnel.rendering.document import Document
from windtunnel.reports.aws_job import prediction
from windtunnel.reports.aws_job.description import flight_of
from windtunnel.reports.job import measured
from windtunnel.reports.job.report import PricePerformance
from windtunnel.reports.modelled.instances import shown_beside
from windtunnel.user_calibration import CalibrationStore, loaded


@dataclass(eq=False, repr=False, kw_only=True)
class FlightReport(PricePerformance):
    """The report of a job on AWS. ``flight``: predicted and real figures; ``rehearsal``: the one predicted from."""

    flight: FlightCheck
    rehearsal: str

    @classmethod
    def of(
        cls,
        describe: Mapping[str, Any],
        rehearsal: Rehearsal,
        full_scale: FullScale | None,
        instances: Sequence[str] | None,
        batch: BatchRule,
        book: PriceBook,
        price_notes: tuple[str, ...],
        user_calibration: CalibrationStore | None,
    ) -> FlightReport:
        """Build the report. Arguments and errors are those of `for_job.report_for_job`."""
        flight, (name, workload) = flight_of(describe), _counted(rehearsal)
        stored = loaded(user_calibration)
        calibration = stored.without(flight.job)
        seen = (
            f"Your calibration has this job too: it is left out here, or {flight.job} would predict itself."
        )
        comparison = compare(
            workload,
            shown_beside(flight.instance_type, instances),
            full_scale,
            prices=book,
            instance_count=flight.instance_count,
            batch=batch,
            corrections=calibration.corrections,
        )
        shown = [item for item in comparison.estimates if item.instance.name == flight.instance_type]
        own = shown[0] if shown else _estimate(flight, workload, full_scale, calibration.corrections)
        facts = measured.collect(describe, None)
        return cls(
            facts,
            workload,
            comparison,
            full_scale,
            None,
            book,
            price_notes=price_notes,
            notes=calibration.notes(comparison.estimates) + ((seen,) if stored != calibration else ()),
            flight=check_flight(flight, own, _price(book, flight, facts)),
            rehearsal=name,
        )

    def document(self) -> Document:
        """The report as sections, with predicted and real figures behind the bill."""
        plain = super().document()
        behind = 1 + max(index for index, section in enumerate(plain.sections) if section.kind == "measured")
        table = prediction.section(self.flight, self.rehearsal)
        first = len(self.notes)
        return replace(
            plain,
            headline=plain.headline[:first]
            + prediction.headline(self.flight, self.full_scale is None)
            + plain.headline[first:],
            sections=(*plain.sections[:behind], table, *plain.sections[behind:]),
        )

    @property
    def _lines_above(self) -> int:
        return super()._lines_above + 2 * len(prediction.headline(self.flight, self.full_scale is None))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; ``flight`` has each figure with its prediction, error and interval."""
        return {**super().to_dict(), "flight": prediction.data(self.flight, self.rehearsal)}


def evidence_for(describe: Mapping[str, Any], rehearsal: Rehearsal, full_scale: FullScale) -> Evidence:
    """How far the modelled step time was off for a job on AWS: what `windtunnel calibrate` keeps.

    Args:
        describe: DescribeTrainingJob's answer.
        rehearsal: what the job is modelled from.
        full_scale: the size of the job on AWS.

    Raises:
        JobNotFinished: the job still runs.
        ConfigurationError: its seconds cannot be compared; the message says why.
    """
    flight, (_, workload) = flight_of(describe), _counted(rehearsal)
    try:
        return evidence_of(flight, _estimate(flight, workload, full_scale, None), workload)
    except PricePerfError as error:
        raise ConfigurationError(str(error)) from error


def _counted(rehearsal: Rehearsal) -> tuple[str, CountedWorkload]:
    basis = rehearsed(rehearsal)
    if basis.workload.rehearsed is not None and not isinstance(basis.workload, CountedWorkload):
        raise ConfigurationError(
            f"rehearsal: the cores of {basis.name} share one copy of the model, so it is modelled by its description. "
            "A job on AWS is held against the counts of a rehearsal alone: give one in which each core has a copy."
        )
    if not isinstance(basis.workload, CountedWorkload):
        raise ConfigurationError(
            "rehearsal: a job on AWS is held against the counts of a rehearsal, not against a description. Give a "
            "job that ran here, or its counters.json."
        )
    return basis.name, basis.workload


def _estimate(
    flight: Flight,
    workload: CountedWorkload,
    full_scale: FullScale | None,
    corrections: Corrections | None,
) -> Estimate:
    return predicted(workload, flight.instance_type, flight.instance_count, full_scale, corrections)


def _price(book: PriceBook, flight: Flight, facts: Mapping[str, Any]) -> Price | None:
    """The price in the job's region on its day; None where the book has none, or a prepaid training plan was used."""
    if "training_plan" in facts:
        return None
    try:
        return measured.listed_price(book, flight.instance_type, flight.started, facts.get("region"))
    except PricePerfError:
        return None
