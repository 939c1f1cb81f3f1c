"""The report of a job: of one that ran here, or of one that ran on AWS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from windtunnel.errors import ConfigurationError, JobNotFinished, ServiceCallFailed
from windtunnel.priceperf import BatchRule, FullScale, Offering, PriceBook
from windtunnel.prices.cache import book_and_notes, cache_path
from windtunnel.rehearsal import Rehearsal
from windtunnel.reports.aws_job.report import FlightReport
from windtunnel.reports.job.measured import ran_here
from windtunnel.reports.job.report import AS_THE_JOB, Precisions, PricePerformance, ReportableJob, report_of
from windtunnel.session.training_service import TERMINAL
from windtunnel.user_calibration import STORED, CalibrationStore


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
    instance_count: int | None = None,
    offering: Offering | None = None,
    discount: float | None = None,
    precisions: Precisions = AS_THE_JOB,
) -> PricePerformance:
    """The report of a job that ran here or on AWS: its bill, and with ``rehearsal`` the prediction beside it.

    Blocks while the job is described and its counters are fetched; idempotent.

    Args:
        job: anything with ``describe()`` and ``counters()``.
        full_scale: the real job behind the rehearsed sample; None: exactly what was rehearsed.
        instances: what to model; default: the job's own instance, ml.trn1.32xlarge, ml.p4d.24xlarge.
        batch: which batch each instance gets (`windtunnel.priceperf.BatchRule`), or the global batch as a number.
        prices: another price book than the built-in one with what `windtunnel prices refresh` has fetched.
        prices_on: the day at whose prices everything modelled is priced; None: each day on which a price changed. A
            bill of AWS keeps the prices of the day on which the job ran.
        rehearsal: for a job on AWS: a job that ran here, its counters or their file. Then ``full_scale`` is the size of
            the job on AWS.
        user_calibration: the calibration whose corrections of step times are used, and named first; None: none.
        instance_count: instances of each type; None: as many as were rehearsed.
        offering: how the hour is bought; None: SageMaker training, on-demand.
        discount: the assumed discount of a savings plan or managed spot, which have no list price: 0.3 is 30 % below
            on-demand.
        precisions: the number formats in which matrix products run.

    Raises:
        UnknownInstance: one of ``instances`` has no figures.
        PriceUnknown: the book has no price of any of them on that day.
        JobNotFinished: the job still runs.
        InvalidInput: an argument out of its range, or a job that cannot run on one of the instances.
        ConfigurationError: ``rehearsal`` cannot be read, or is given for a job that did not run on AWS, or together
            with one of the last four arguments; or a discount is given without an offering.
    """
    describe = job.describe()
    book, notes = book_and_notes(prices, prices_on)
    if rehearsal is None:
        if discount is not None and offering is None:
            raise ConfigurationError(
                "discount= is that of a way to buy the hour: give offering= too, as 'SageMaker managed spot'."
            )
        counters = _counters(job, describe)
        bought = book if offering is None else book.buying(offering, discount)
        return report_of(
            describe, counters, full_scale, instances, batch, bought, notes, user_calibration,
            instance_count=instance_count, precisions=precisions,
        )  # fmt: skip
    others = {"instance_count": instance_count, "offering": offering, "discount": discount}
    given = [name for name, value in others.items() if value is not None]
    given += ["precisions"] if precisions != AS_THE_JOB else []
    if given:
        raise ConfigurationError(
            f"{given[0]}= does not go with rehearsal=: what the job on AWS took is held against its own instances, at "
            f"the price of that day. Leave {given[0]}= out."
        )
    return FlightReport.of(describe, rehearsal, full_scale, instances, batch, book, notes, user_calibration)


def _counters(job: ReportableJob, describe: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The job's counters; None for a job that ended without any. A running job raises its own `JobNotFinished`."""
    try:
        return job.counters()
    except (JobNotFinished, ServiceCallFailed) as error:
        # A job on AWS has no counters, and the caller may have no right to read its bucket.
        ended = describe.get("TrainingJobStatus") in TERMINAL
        if ended and not (ran_here(describe) and isinstance(error, ServiceCallFailed)):
            return None
        raise


def inputs_written() -> tuple[int | None, int | None]:
    """When the files that a report reads besides its job were written, in nanoseconds: prices, the user's calibration.
    None: no file.

    While both stay the same, so does the report of a job that has ended.
    """
    return _written(cache_path()), _written(STORED.path)


def _written(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
