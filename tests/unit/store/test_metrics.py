"""Metric values as time series."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.store.samples import named
from windtunnel_local.service.ground.errors import LogsNotFound
from windtunnel_local.service.ground.ports import MetricValue
from windtunnel_local.store import SqliteStore


def test_values_come_back_by_time(store: SqliteStore, tmp_path: Path) -> None:
    """Of one job and metric, between two moments; what is not finite is passed over."""
    for name in ("a", "b"):
        store.insert_job(named(tmp_path, name))
        store.open_log_stream(name, "algo-1", f"{name}/s", 1)
    values = [MetricValue("loss", 30, 0.5), MetricValue("acc", 10, 1.0), MetricValue("loss", 10, 0.9)]
    values += [MetricValue("loss", 20, value) for value in (float("nan"), float("inf"), 0.7, 0.7)]
    store.append_metrics("a/s", values, 7)
    store.append_metrics("b/s", [MetricValue("loss", 5, 2.0)], 3)
    assert store.metric_values("a", "loss", 0, 99) == [(10, 0.9), (20, 0.7), (20, 0.7), (30, 0.5)]
    assert store.metric_values("a", "loss", 20, 30) == [(20, 0.7), (20, 0.7)]
    assert store.metric_values("a", "none", 0, 99) == []
    assert store.last_metrics("a") == [MetricValue("acc", 10, 1.0), MetricValue("loss", 30, 0.5)]
    stream = store.log_stream("a/s")
    assert stream is not None
    assert stream.scanned == 7


def test_names_are_listed_in_pages(store: SqliteStore, tmp_path: Path) -> None:
    """By job and metric, of one job, or of one metric."""
    for name in ("a", "b"):
        store.insert_job(named(tmp_path, name))
        store.open_log_stream(name, "algo-1", f"{name}/s", 1)
        store.append_metrics(f"{name}/s", [MetricValue(metric, 1, 1.0) for metric in ("y", "x")], 1)
    everything = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")]
    assert store.metric_names(None, None, None, 9) == everything
    assert store.metric_names(None, None, ("a", "x"), 2) == everything[1:3]
    assert store.metric_names("b", None, None, 9) == everything[2:]
    assert store.metric_names(None, "x", ("a", "x"), 9) == [("b", "x")]
    store.delete_job("a")
    assert store.metric_names(None, None, None, 9) == everything[2:]
    assert store.database.read("SELECT count(*) FROM metric_values") == [(2,)]


def test_values_and_how_far_the_log_was_searched_are_one(store: SqliteStore, tmp_path: Path) -> None:
    """Both or neither: or a value would be lost, or stored twice, when the search resumes."""
    store.insert_job(named(tmp_path, "a"))
    store.open_log_stream("a", "algo-1", "s", 1)
    with pytest.raises(OverflowError):
        store.append_metrics("s", [MetricValue("m", 1, 1.0), MetricValue("m", 1 << 70, 1.0)], 5)
    stream = store.log_stream("s")
    assert stream is not None
    assert stream.scanned == 0
    assert store.metric_values("a", "m", 0, 9) == []
    with pytest.raises(LogsNotFound):
        store.append_metrics("none", [], 1)
