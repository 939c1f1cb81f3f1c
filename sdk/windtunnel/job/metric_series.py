"""A job's metrics over time, from CloudWatch: the values that its metric_definitions found in its log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from windtunnel.errors import ConfigurationError
from windtunnel.session.training_service import TrainingService

if TYPE_CHECKING:
    from windtunnel.reports.metric_series import MetricSeries

_MOST_POINTS = 1_440
"""The most points that one answer of GetMetricStatistics has."""
_PERIODS_S = (1, 5, 10, 30, 60, 300, 900, 3_600, 21_600)
_FROM_AGE = ((timedelta(days=63), 3_600), (timedelta(days=15), 300), (timedelta(), 60))
"""The shortest period (seconds) in which AWS keeps values of at least this age; SageMaker's: a minute or more."""


def metric_series(service: TrainingService, description: Mapping[str, Any], *, local: bool) -> MetricSeries:
    """All metrics of a described job, in the shortest period that CloudWatch offers for the job's duration and age.

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
            r"'Regex': r'\bloss=([0-9.]+)'}] (windtunnel run --metric 'loss=\bloss=([0-9.]+)')."
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
    """The shortest period, in seconds, with which one answer of CloudWatch covers the time from start to end.

    ``age``: that of the oldest value, on AWS; None: the local backend, which keeps every value.
    """
    # If this machine's clock is slow, the age is below 0.
    old = None if age is None else max(age, timedelta())
    shortest = 1 if old is None else next(period for older, period in _FROM_AGE if old >= older)
    passed = (end - start).total_seconds()
    # One more point at either end: periods begin before the job's start, and end after its end.
    fits = (period for period in _PERIODS_S if period >= shortest and passed / period + 2 <= _MOST_POINTS)
    return next(fits, 86_400)
