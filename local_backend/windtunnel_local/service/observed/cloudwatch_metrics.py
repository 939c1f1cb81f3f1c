"""CloudWatch's operations on metrics: the values that a job's MetricDefinitions found, and metrics of endpoints.

Namespaces and dimensions are SageMaker's: TrainingJobName; EndpointName with VariantName. Each value of a job is kept
as it was printed, so that statistics are exact for every period; values of endpoints are kept by the minute.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from itertools import accumulate, groupby
from typing import Any

from windtunnel_local.service.ground import page_token
from windtunnel_local.service.ground.errors import ServiceError
from windtunnel_local.service.ground.ports import Store

NAMESPACE = "/aws/sagemaker/TrainingJobs"
DIMENSION = "TrainingJobName"
ENDPOINTS = "AWS/SageMaker"
_OF_ENDPOINTS = ("EndpointName", "VariantName")
MAX_DATAPOINTS = 1_440
MAX_RESULTS = 100_800
MAX_QUERIES = 500
_LIST_PAGE = 500
_SHORT_PERIODS_S = (1, 5, 10, 20, 30)
_ID = re.compile(r"[a-z][a-zA-Z0-9_]*")

Counted = Sequence[tuple[float, int]]
"""Pairs of a value and how often it occurred, in any order; a value may be in several pairs."""


def _samples(values: Counted) -> int:
    return sum(count for _, count in values)


def _sum(values: Counted) -> float:
    return math.fsum(value * count for value, count in values)


_STATISTICS: Mapping[str, Callable[[Counted], float]] = {
    "SampleCount": lambda values: float(_samples(values)),
    "Average": lambda values: _sum(values) / _samples(values),
    "Sum": _sum,
    "Minimum": lambda values: min(values)[0],
    "Maximum": lambda values: max(values)[0],
}


class InvalidParameterValue(ServiceError):
    """CloudWatch's error for a parameter whose value is not valid."""

    code = "InvalidParameterValue"


class InvalidParameterCombination(ServiceError):
    """CloudWatch's error for parameters that exclude each other."""

    code = "InvalidParameterCombination"


class MetricQueryInvalid(ServiceError):
    """CloudWatch's error for an entry of MetricDataQueries that is not valid."""

    code = "ValidationError"


class MetricsService:
    """Computes statistics of stored metric values. Only reads; thread-safe."""

    def __init__(self, store: Store) -> None:
        """``store`` holds the values of jobs and endpoints."""
        self._store = store

    def get_metric_statistics(
        self,
        namespace: str,
        name: str,
        dimensions: Sequence[Mapping[str, str]],
        start: datetime,
        end: datetime,
        period_s: int,
        statistics: Sequence[str],
        extended: Sequence[str] = (),
        unit: str | None = None,
    ) -> dict[str, Any]:
        """GetMetricStatistics' answer: Label and Datapoints, in order of time. Empty if ``unit`` is not the metric's.

        Raises:
            InvalidParameterValue, InvalidParameterCombination
        """
        if not statistics and not extended:
            raise InvalidParameterCombination(
                "At least one of the parameters Statistics and ExtendedStatistics must be specified."
            )
        if statistics and extended:
            raise InvalidParameterCombination(
                "The parameters Statistics and ExtendedStatistics are mutually exclusive and you have specified both."
            )
        if start >= end:
            raise InvalidParameterValue("The parameter StartTime must be less than the parameter EndTime.")
        _check_period(period_s)
        wanted = (end - start).total_seconds() / period_s
        if wanted > MAX_DATAPOINTS:
            raise InvalidParameterCombination(
                f"You have requested up to {math.ceil(wanted):,} datapoints, which exceeds the limit of"
                f" {MAX_DATAPOINTS:,}. You may reduce the datapoints requested by increasing Period, or"
                " decreasing the time range."
            )
        plain = {stat: statistic(stat) for stat in statistics}
        percentiles = {stat: statistic(stat) for stat in extended}
        points = []
        for moment, values in self._buckets(namespace, name, dimensions, start, end, period_s, unit):
            point: dict[str, Any] = {"Timestamp": moment, "Unit": _unit(namespace, name)}
            point |= {stat: compute(values) for stat, compute in plain.items()}
            if percentiles:
                point["ExtendedStatistics"] = {s: compute(values) for s, compute in percentiles.items()}
            points.append(point)
        return {"Label": name, "Datapoints": points}

    def get_metric_data(
        self,
        queries: Sequence[Mapping[str, Any]],
        start: datetime,
        end: datetime,
        ascending: bool = False,
        limit: int | None = None,
        token: str | None = None,
    ) -> dict[str, Any]:
        """GetMetricData's answer: a result for each query, at most ``limit`` points in all, NextToken if there is more.

        Raises:
            InvalidParameterValue: also for an Expression: metric math is not supported.
            MetricQueryInvalid: an Id does not have the required form.
        """
        if start >= end:
            raise InvalidParameterValue("The parameter StartTime must be less than the parameter EndTime.")
        if not 1 <= len(queries) <= MAX_QUERIES:
            raise InvalidParameterValue(
                f"{len(queries)} MetricDataQueries were given; valid: 1 to {MAX_QUERIES}."
            )
        ids = [query["Id"] for query in queries]
        _check_ids(ids)
        if len(set(ids)) < len(ids):
            raise InvalidParameterValue("The Ids of MetricDataQueries must be unique within a call.")
        skip = 0 if token is None else _position(token)
        left = min(limit or MAX_RESULTS, MAX_RESULTS)
        results, passed = [], 0
        for query in queries:
            points = self._points(query, start, end, ascending)
            if not query.get("ReturnData", True):
                continue
            rest = points[max(0, skip - passed) :]
            page = rest[:left]
            passed += len(points)
            left -= len(page)
            results.append(
                {
                    "Id": query["Id"],
                    "Label": query.get("Label") or query["MetricStat"]["Metric"]["MetricName"],
                    "Timestamps": [moment for moment, _ in page],
                    "Values": [value for _, value in page],
                    "StatusCode": "Complete" if len(page) == len(rest) else "PartialData",
                }
            )
        shown = skip + sum(len(result["Values"]) for result in results)
        answer: dict[str, Any] = {"MetricDataResults": results}
        return {**answer, "NextToken": page_token.encode(shown)} if shown < passed else answer

    def list_metrics(
        self,
        namespace: str | None = None,
        name: str | None = None,
        dimensions: Sequence[Mapping[str, str]] = (),
        token: str | None = None,
    ) -> dict[str, Any]:
        """ListMetrics' answer: a page of Metrics, sorted by job and name; those of endpoints are on the last page.

        Raises:
            InvalidParameterValue: the token is not valid.
        """
        ours = self._of_endpoints(name, dimensions) if namespace in (None, ENDPOINTS) else []
        jobs = {d.get("Value") for d in dimensions if d["Name"] == DIMENSION} - {None}
        foreign = any(d["Name"] != DIMENSION for d in dimensions)
        if namespace not in (None, NAMESPACE) or foreign or len(jobs) > 1:
            return {"Metrics": ours}
        after = None if token is None else _pair(token)
        found = self._store.metric_names(next(iter(jobs), None), name, after, _LIST_PAGE + 1)
        page = found[:_LIST_PAGE]
        metrics = [
            {
                "Namespace": NAMESPACE,
                "MetricName": metric,
                "Dimensions": [{"Name": DIMENSION, "Value": job}],
            }
            for job, metric in page
        ]
        if len(found) > len(page):
            return {"Metrics": metrics, "NextToken": page_token.encode(page[-1])}
        return {"Metrics": metrics + ours}  # endpoints are few, so the last page has room for all of theirs

    def _of_endpoints(
        self, name: str | None, dimensions: Sequence[Mapping[str, str]]
    ) -> list[dict[str, Any]]:
        found = [
            (metric, dict(zip(_OF_ENDPOINTS, place, strict=True)))
            for *place, metric in self._store.endpoint_metric_names()
        ]
        return [
            {
                "Namespace": ENDPOINTS,
                "MetricName": metric,
                "Dimensions": [{"Name": key, "Value": value} for key, value in place.items()],
            }
            for metric, place in found
            if name in (None, metric)
            and all(d["Name"] in place and d.get("Value") in (None, place[d["Name"]]) for d in dimensions)
        ]

    def _points(
        self, query: Mapping[str, Any], start: datetime, end: datetime, ascending: bool
    ) -> list[tuple[datetime, float]]:
        stat = query.get("MetricStat")
        if stat is None or query.get("Expression"):
            raise InvalidParameterValue(
                f"MetricDataQueries {query['Id']!r}: this backend serves MetricStat, not Expression (no metric"
                " math, no Metrics Insights); ask for the metric itself and compute from its values."
            )
        metric, compute = stat["Metric"], statistic(stat["Stat"])
        _check_period(stat["Period"])
        buckets = self._buckets(
            metric.get("Namespace"),
            metric.get("MetricName"),
            metric.get("Dimensions", ()),
            start,
            end,
            stat["Period"],
            stat.get("Unit"),
        )
        points = [(moment, compute(values)) for moment, values in buckets]
        return points if ascending else points[::-1]

    def _buckets(
        self,
        namespace: str | None,
        name: str | None,
        dimensions: Sequence[Mapping[str, str]],
        start: datetime,
        end: datetime,
        period_s: int,
        unit: str | None,
    ) -> list[tuple[datetime, Counted]]:
        """The values of each period, with the period's start. Empty periods are left out; all, if the unit differs."""
        period_ms = period_s * 1000
        first_ms, end_ms = int(start.timestamp() * 1000) // period_ms * period_ms, int(end.timestamp() * 1000)
        named = {d["Name"]: d["Value"] for d in dimensions}
        if name is None or len(named) != len(dimensions) or unit not in (None, _unit(namespace, name)):
            return []
        if namespace == NAMESPACE and named.keys() == {DIMENSION}:
            printed = self._store.metric_values(named[DIMENSION], name, first_ms, end_ms)
            values = [(moment_ms, value, 1) for moment_ms, value in printed]
        elif namespace == ENDPOINTS and named.keys() == set(_OF_ENDPOINTS):
            endpoint, variant = (named[key] for key in _OF_ENDPOINTS)
            minutes = self._store.endpoint_metrics(endpoint, variant, name, first_ms, end_ms)
            values = [(m.minute_ms, value, count) for m in minutes for value, count in m.counts.items()]
        else:
            return []
        buckets = groupby(values, key=lambda value: value[0] // period_ms * period_ms)  # in order of time
        return [
            (datetime.fromtimestamp(begin / 1000, timezone.utc), [value[1:] for value in bucket])
            for begin, bucket in buckets
        ]


def _unit(namespace: str | None, name: str) -> str:
    """The unit of all values of a metric."""
    return "Microseconds" if namespace == ENDPOINTS and name.endswith("Latency") else "None"


def _check_ids(ids: Sequence[str]) -> None:
    wrong = [
        f"The value {identity[:255]} for parameter MetricDataQueries.member.{place}.Id is not matching the expected"
        f" pattern ^{_ID.pattern}$."
        for place, identity in enumerate(ids, 1)
        if not _ID.fullmatch(identity)
    ]
    if wrong:
        raise MetricQueryInvalid("\n".join(wrong))


def _check_period(period_s: int) -> None:
    if period_s in _SHORT_PERIODS_S or (period_s >= 60 and period_s % 60 == 0):
        return
    raise InvalidParameterValue(
        f"The parameter Period must be {', '.join(map(str, _SHORT_PERIODS_S))} or a multiple of 60 seconds;"
        f" given: {period_s}."
    )


def statistic(stat: str) -> Callable[[Counted], float]:
    """The function that computes a statistic: one of `_STATISTICS`, or a percentile such as p50 or p99.9."""
    if stat in _STATISTICS:
        return _STATISTICS[stat]
    try:
        percent = float(stat[1:]) if stat[:1] == "p" else -1.0
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise InvalidParameterValue(
            f"The statistic {stat!r} is not served. Valid: {', '.join(_STATISTICS)}, and percentiles from p0 to p100."
        )
    return lambda values: _percentile(values, percent)


def _percentile(values: Counted, percent: float) -> float:
    """The percentile, interpolated linearly between the two nearest values."""
    ordered = sorted(values)
    ends = list(accumulate(count for _, count in ordered))
    place = (ends[-1] - 1) * percent / 100
    below, above = (ordered[bisect_right(ends, at)][0] for at in (math.floor(place), math.ceil(place)))
    return below + (above - below) * (place % 1)


# --- tokens -------------------------------------------------------------------


def _position(token: str) -> int:
    position = page_token.decode(token, _bad_token())
    if type(position) is not int or not 0 <= position < 2**53:
        raise _bad_token()
    return position


def _pair(token: str) -> tuple[str, str]:
    match page_token.decode(token, _bad_token()):
        case [str() as job, str() as name]:
            return job, name
    raise _bad_token()


def _bad_token() -> InvalidParameterValue:
    return InvalidParameterValue("The NextToken is not one that this service gave out.")
