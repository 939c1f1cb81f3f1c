"""Charts of a job's metrics over time, from the service behind CloudWatch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from windtunnel_local.service.observed.cloudwatch_metrics import (
    DIMENSION,
    MAX_DATAPOINTS,
    NAMESPACE,
    MetricsService,
)
from windtunnel_local.ui.charts.line_chart import MOST_POINTS, Series, line_chart

_PERIODS_S = (1, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400)
_POINTS_A_PAGE = 2000
_LEAST_POINTS = 40


@dataclass(frozen=True)
class Metric:
    """A metric's chart. ``last``: its newest value, if any. ``period_s``: each point is the mean of so many seconds."""

    name: str
    chart: Markup
    last: float | None
    period_s: int


def metrics(service: MetricsService, description: Mapping[str, Any], now: datetime) -> list[Metric]:
    """The charts of the job's MetricDefinitions, in their order."""
    names = names_of(description)
    most = max(_LEAST_POINTS, min(MOST_POINTS, _POINTS_A_PAGE // max(1, len(names))))
    final = {one["MetricName"]: float(one["Value"]) for one in description.get("FinalMetricDataList", ())}
    found = []
    for place, name in enumerate(names):
        points, period = series(service, description, name, now)
        last = final.get(name, points[-1][1] if points else None)
        drawn = Series(name, points, place)
        chart = line_chart(name, [drawn], key=f"m{place}", most_points=most)
        found.append(Metric(name, chart, last, period))
    return found


def names_of(description: Mapping[str, Any]) -> list[str]:
    """The names of the metrics that the job defines."""
    definitions = description["AlgorithmSpecification"].get("MetricDefinitions") or ()
    return list(dict.fromkeys(definition["Name"] for definition in definitions))


def series(
    service: MetricsService, description: Mapping[str, Any], name: str, now: datetime
) -> tuple[Sequence[tuple[float, float]], int]:
    """Points (seconds since the training began, mean of a period), and the length of the periods in seconds."""
    begin = description.get("TrainingStartTime") or description["CreationTime"]
    end = description.get("TrainingEndTime") or now
    passed_s = max(0.0, (end - begin).total_seconds())
    period = next((p for p in _PERIODS_S if passed_s / p + 2 <= MAX_DATAPOINTS), _PERIODS_S[-1])
    answer = service.get_metric_statistics(
        NAMESPACE,
        name,
        [{"Name": DIMENSION, "Value": description["TrainingJobName"]}],
        begin - timedelta(seconds=period),
        end + timedelta(seconds=period),
        period,
        ["Average"],
    )
    return [
        (max(0.0, (point["Timestamp"] - begin).total_seconds()), point["Average"])
        for point in answer["Datapoints"]
    ], period
