"""CloudWatch's statistics over a job's metric values."""

from __future__ import annotations

import math
from base64 import b64encode
from datetime import datetime, timedelta, timezone
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.service import samples
from windtunnel_local.service.ground.containers import LogBatch, LogLine
from windtunnel_local.service.ground.ports import MetricValue
from windtunnel_local.service.observed.cloudwatch_metrics import (
    DIMENSION,
    NAMESPACE,
    InvalidParameterCombination,
    InvalidParameterValue,
    MetricsService,
    statistic,
)
from windtunnel_local.store import SqliteStore

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
JOB = [{"Name": DIMENSION, "Value": "job"}]


def stored(
    folder: Path, values: list[tuple[float, float]], names: tuple[str, ...] = ("loss",)
) -> SqliteStore:
    """A store with one job whose metrics have ``(seconds after START, value)``."""
    store = SqliteStore(folder / "state.sqlite")
    store.insert_job(samples.job(folder))
    store.open_log_stream("job", "algo-1", "job/algo-1-1", 0)
    store.append_log("job/algo-1-1", LogBatch(tuple(LogLine(0, "x") for _ in values), "c"), 0)
    moments = [int((START + timedelta(seconds=s)).timestamp() * 1000) for s, _ in values]
    found = [MetricValue(n, m, v) for n in names for m, (_, v) in zip(moments, values, strict=True)]
    store.append_metrics("job/algo-1-1", found, len(values))
    return store


def statistics(
    store: SqliteStore, hours: int = 1, period_s: int = 60, **arguments: Any
) -> list[dict[str, Any]]:
    """The data points of an hour."""
    arguments = {"statistics": ["Average"], **arguments}
    answer = MetricsService(store).get_metric_statistics(
        NAMESPACE, "loss", JOB, START, START + timedelta(hours=hours), period_s, **arguments
    )
    points: list[dict[str, Any]] = answer["Datapoints"]
    return points


def test_each_period_that_has_values_is_a_point(tmp_path: Path) -> None:
    """Its time is the beginning of the period; periods without values have no point."""
    store = stored(tmp_path, [(0, 4.0), (59, 2.0), (180, 1.0)])
    points = statistics(store, statistics=["Average", "SampleCount", "Sum", "Minimum", "Maximum"])
    assert [point["Timestamp"] for point in points] == [START, START + timedelta(minutes=3)]
    assert points[0] | {"Timestamp": None} == {
        "Timestamp": None,
        "Unit": "None",
        "Average": 3.0,
        "SampleCount": 2.0,
        "Sum": 6.0,
        "Minimum": 2.0,
        "Maximum": 4.0,
    }
    store.close()


def test_the_end_is_not_included(tmp_path: Path) -> None:
    """StartTime is, EndTime is not."""
    store = stored(tmp_path, [(0, 1.0), (3600, 2.0)])
    assert [point["Average"] for point in statistics(store)] == [1.0]
    store.close()


def spelled_out(values: list[float]) -> dict[str, float]:
    """Each statistic, by Python's own functions, of values that stand one by one."""
    return {
        "SampleCount": len(values),
        "Sum": math.fsum(values),
        "Average": math.fsum(values) / len(values),
        "Minimum": min(values),
        "Maximum": max(values),
    }


THREE_DIGITS = st.builds(
    lambda digits, power: digits * 10.0**power, st.integers(-999, 999), st.integers(0, 9)
)


@given(st.lists(st.tuples(THREE_DIGITS, st.integers(1, 30)), min_size=1, max_size=12))
def test_counted_values_are_as_good_as_all_of_them(values: list[tuple[float, int]]) -> None:
    """Every statistic of values with how often there was each is that of the values one by one."""
    each = [value for value, count in values for _ in range(count)]
    assert {name: statistic(name)(values) for name in spelled_out(each)} == spelled_out(each)
    cuts = quantiles(each if len(each) > 1 else each * 2, n=100, method="inclusive")
    found = [statistic(f"p{percent}")(values) for percent in range(101)]
    rounded = 1e-12 * max(abs(value) for value in each)  # where two large values meet at 0
    assert found == pytest.approx([min(each), *cuts, max(each)], abs=rounded)


@pytest.mark.parametrize("namespace", ["/aws/sagemaker/Other", "AWS/EC2"])
def test_a_metric_is_named_exactly_or_not_at_all(tmp_path: Path, namespace: str) -> None:
    """Another namespace, or no dimension, is another metric: no points, no error."""
    store = stored(tmp_path, [(0, 1.0)])
    service = MetricsService(store)
    end = START + timedelta(hours=1)
    assert service.get_metric_statistics(namespace, "loss", JOB, START, end, 60, ["Sum"])["Datapoints"] == []
    assert service.get_metric_statistics(NAMESPACE, "loss", [], START, end, 60, ["Sum"])["Datapoints"] == []
    store.close()


def test_wrong_parameters_are_named(tmp_path: Path) -> None:
    """Period, statistic, time range and number of points."""
    store = stored(tmp_path, [(0, 1.0)])
    with pytest.raises(InvalidParameterValue, match="Period"):
        statistics(store, period_s=61)
    with pytest.raises(InvalidParameterValue, match="'Median' is not served"):
        statistics(store, statistics=["Median"])
    with pytest.raises(InvalidParameterCombination, match="1,440"):
        statistics(store, hours=25)
    with pytest.raises(InvalidParameterCombination, match="At least one"):
        statistics(store, statistics=[])
    with pytest.raises(InvalidParameterValue, match="StartTime"):
        statistics(store, hours=0)
    store.close()


def query(identity: str, name: str = "loss") -> dict[str, Any]:
    """One entry of MetricDataQueries."""
    metric = {"Namespace": NAMESPACE, "MetricName": name, "Dimensions": JOB}
    return {"Id": identity, "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Average"}}


@pytest.mark.parametrize("limit", [1, 3, 4, 7, 100])
def test_pages_of_metric_data_lose_nothing(tmp_path: Path, limit: int) -> None:
    """Whatever their size, all pages together are all points of all queries, newest first."""
    values = [(60.0 * minute, float(minute)) for minute in range(5)]
    store = stored(tmp_path, values, ("loss", "accuracy"))
    service = MetricsService(store)
    seen: dict[str, list[float]] = {"a": [], "b": []}
    token = None
    while True:
        queries = [query("a"), query("b", "accuracy")]
        answer = service.get_metric_data(queries, START, START + timedelta(hours=1), limit=limit, token=token)
        for result in answer["MetricDataResults"]:
            seen[result["Id"]] += result["Values"]
        token = answer.get("NextToken")
        if token is None:
            break
    assert seen == {"a": [4.0, 3.0, 2.0, 1.0, 0.0], "b": [4.0, 3.0, 2.0, 1.0, 0.0]}
    store.close()


def test_an_expression_is_refused_by_name(tmp_path: Path) -> None:
    """Not answered with nothing."""
    store = stored(tmp_path, [(0, 1.0)])
    with pytest.raises(InvalidParameterValue, match=r"'e': this backend serves MetricStat"):
        MetricsService(store).get_metric_data(
            [{"Id": "e", "Expression": "m1 * 2"}], START, START + timedelta(hours=1)
        )
    store.close()


def test_the_list_of_metrics(tmp_path: Path) -> None:
    """By job, by name, or all; an unknown dimension names no metric."""
    store = stored(tmp_path, [(0, 1.0)], ("loss", "accuracy"))
    service = MetricsService(store)
    names = [metric["MetricName"] for metric in service.list_metrics()["Metrics"]]
    assert names == ["accuracy", "loss"]
    assert [m["MetricName"] for m in service.list_metrics(name="loss")["Metrics"]] == ["loss"]
    assert service.list_metrics(dimensions=[{"Name": DIMENSION, "Value": "other"}])["Metrics"] == []
    assert service.list_metrics(dimensions=[{"Name": "Host"}])["Metrics"] == []
    for token in ("x", b64encode(b"[" * 100_000).decode()):
        with pytest.raises(InvalidParameterValue, match="NextToken"):
            service.list_metrics(token=token)
    store.close()
