"""A job's metrics over time, as CloudWatch keeps them: what its metric_definitions found in its log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from windtunnel.errors import ConfigurationError
from windtunnel.session.training_service import TrainingService

if TYPE_CHECKING:
    from windtunnel.reports.metric_series import MetricSeries

_MOST_POINTS = 1_440
"""Of one answer of GetMetricStatistics."""
_PERIODS_S = (1, 5, 10, 30, 60, 300, 900, 3_600, 21_600)
_FROM_AGE = ((timedelta(days=63), 3_600), (timedelta(days=15), 300), (timedelta(), 60))
"""AWS keeps values of these ages for these periods (seconds), and SageMaker's for none under a minute."""


def metric_series(service: TrainingService, description: Mapping[str, Any], *, local: bool) -> MetricSeries:
    """All metrics of a described job, in the shortest period that CloudWatch answers for its time.

    Raises:
        ConfigurationError: the job has no metric_definitions.
    """
    from windtunnel.reports.metric_series import MetricPoint, MetricSeries

    job = description["TrainingJobName"]
    definitions = description.get("AlgorithmSpecification", {}).get("MetricDefinitions") or ()
    names = list(dict.fromkeys(definition["Name"] for definition in definitions))
    if not names:
        raise ConfigurationError(
            f"Training job {job} has no metrics: it was started without metric_definitions=[{{'Name': 'loss', "
            "'Regex': 'loss=([0-9.]+)'}] (windtunnel run --metric 'loss=loss=([0-9.]+)')."
        )
    now = datetime.now(timezone.utc)
    start, end = description["CreationTime"], description.get("TrainingEndTime") or now
    period = period_s(start, end, None if local else now - start)
    until = end + timedelta(seconds=period)
    return MetricSeries(
        job,
        period,
        {
            name: tuple(
                MetricPoint(point["Timestamp"], float(point["Average"]), int(point["SampleCount"]))
                for point in service.metric_statistics(job, name, start, until, period)
            )
            for name in names
        },
        final_metrics(description),
    )


def final_metrics(description: Mapping[str, Any]) -> dict[str, float]:
    """The last value of each metric of a described job."""
    found = description.get("FinalMetricDataList", ())
    return {metric["MetricName"]: float(metric["Value"]) for metric in found}


def period_s(start: datetime, end: datetime, age: timedelta | None) -> int:
    """Seconds of the shortest period for which CloudWatch answers for that time at once.

    ``age``: of the oldest value, on AWS; None: the local backend, which keeps every value.
    """
    # Of a job that is younger than this machine's clock says, the age is below 0.
    old = None if age is None else max(age, timedelta())
    shortest = 1 if old is None else next(period for older, period in _FROM_AGE if old >= older)
    passed = (end - start).total_seconds()
    # A point more at either end: what begins before the job does, and what its end falls into.
    fits = (period for period in _PERIODS_S if period >= shortest and passed / period + 2 <= _MOST_POINTS)
    return next(fits, 86_400)
