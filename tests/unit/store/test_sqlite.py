"""The record of jobs, tags and logs."""

from __future__ import annotations

import resource
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.fakes.clock import START
from tests.unit.store.samples import batch, named
from windtunnel_local.service.ground import lifecycle as events
from windtunnel_local.service.ground.containers import LogBatch, LogLine
from windtunnel_local.service.ground.errors import (
    JobNotFound,
    LogsNotFound,
    StoreUnavailable,
)
from windtunnel_local.service.ground.job import SpotTerms, WarmPool
from windtunnel_local.service.ground.lifecycle import advance
from windtunnel_local.store import SqliteStore


def test_a_job_comes_back_as_it_was(store: SqliteStore, tmp_path: Path) -> None:
    """To the microsecond, through every field, also one that is added later: it would be lost with the next start."""
    given = named(tmp_path, "a")
    store.insert_job(given)
    assert store.get_job("a") == given
    life = given.lifecycle
    steps: list[events.Event] = [
        events.DownloadStarted(),
        events.TrainingStarted(),
        events.MaxRuntimeReached(),
    ]
    for i, event in enumerate(steps):
        life = advance(life, event, START + timedelta(seconds=i, microseconds=i + 7))
    life = replace(life, training_end=START, failure_reason="why")
    metric = {"MetricName": "m", "Value": 0.5, "Timestamp": datetime(2026, 1, 1, 1, 2, 3, 4, timezone.utc)}
    changed = replace(
        given,
        lifecycle=life,
        model_artifact="s3://b/m",
        final_metrics=(metric,),
        slot="other",
        spot=SpotTerms(3, 7, 61.0, 0.6, "checkpoint"),
        updates={"ResourceConfig": {"KeepAlivePeriodInSeconds": 60}},
        warm_pool=WarmPool("Reused", 12, "b", 1, 2, ready=True, begins={"algo-1": "x"}),
    )
    for part in (changed, life, changed.spot, changed.warm_pool):
        assert part is not None
        for one in fields(part):
            default = one.default if one.default is not MISSING else one.default_factory
            assert default is MISSING or getattr(part, one.name) not in (default, {}, ()), one.name
    store.update_job(changed)
    assert store.get_job("a") == changed


def test_what_cannot_be_read_now_can_be_read_later(store: SqliteStore, tmp_path: Path) -> None:
    """A want of descriptors, or a disk that went away: the caller is told to try again."""
    store.insert_job(named(tmp_path, "a"))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with store.database.reader():  # the next one needs a connection of its own
        # Three are always open. Above them what an earlier test has left may be closed at any moment.
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            with pytest.raises(StoreUnavailable, match="cannot be read now"):
                store.get_job("a")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert store.get_job("a") is not None


def test_what_is_not_there(store: SqliteStore, tmp_path: Path) -> None:
    """No silent creation, and no error where asking is fine."""
    assert store.get_job("a") is None
    with pytest.raises(JobNotFound):
        store.update_job(named(tmp_path, "a"))
    with pytest.raises(JobNotFound):
        store.delete_job("a")
    with pytest.raises(JobNotFound):
        store.set_tags("arn", {"k": "v"})
    with pytest.raises(LogsNotFound):
        store.append_log("a/algo-1-1", batch("x", cursor="1"), 5)
    assert store.log_cursor("a/algo-1-1") is None
    assert store.read_log("a/algo-1-1", 0, 5) == []


def test_tags(store: SqliteStore, tmp_path: Path) -> None:
    """They go with their job."""
    given = named(tmp_path, "a")
    store.insert_job(given)
    store.set_tags(given.arn, {"b": "1", "a": "2"})
    store.set_tags(given.arn, {"b": "3", "c": "4"})
    store.remove_tags(given.arn, ["c", "unknown"])
    assert list(store.tags(given.arn).items()) == [("a", "2"), ("b", "3")]
    store.delete_job("a")
    store.insert_job(given)
    assert store.tags(given.arn) == {}


def test_logs(store: SqliteStore, tmp_path: Path) -> None:
    """Sequences without gaps, the cursor with its lines, reading from both ends."""
    store.insert_job(named(tmp_path, "a"))
    stream = "a/algo-1-1"
    for _ in range(2):
        store.open_log_stream("a", "algo-1", stream, 17)
    assert store.log_streams("a/")[0].first_event_ms is None
    store.append_log(stream, batch("one", "", cursor="c1"), 5)
    store.append_log(stream, batch(cursor="c2"), 6)
    store.append_log(stream, batch("thr\udcffee ü", cursor="c3", at_ms=2000), 7)
    found = store.read_log(stream, 0, 10)
    assert [(e.sequence, e.timestamp_ms, e.ingestion_ms, e.message) for e in found] == [
        (0, 1000, 5, "one"),
        (1, 1001, 5, ""),
        (2, 2000, 7, "thr?ee ü"),
    ]
    assert store.log_cursor(stream) == "c3"
    assert [e.sequence for e in store.read_log(stream, 1, 1)] == [1]
    assert [e.sequence for e in store.read_log(stream, 0, 9, start_ms=1001, end_ms=2000)] == [1]
    assert [e.sequence for e in store.read_log_before(stream, 3, 2)] == [1, 2]
    assert [e.sequence for e in store.read_log_before(stream, 2, 9, start_ms=1001)] == [1]
    (described,) = store.log_streams("a/")
    assert (described.first_event_ms, described.last_event_ms, described.events) == (1000, 2000, 3)
    assert store.log_streams("a/algo-2") == []
    store.delete_job("a")
    assert store.log_streams("") == []
    assert store.read_log(stream, 0, 10) == []


def test_a_line_that_cannot_be_stored_takes_its_cursor_back(store: SqliteStore, tmp_path: Path) -> None:
    """Both or neither: or a line would be lost on resumption."""
    store.insert_job(named(tmp_path, "a"))
    store.open_log_stream("a", "algo-1", "s", 1)
    store.append_log("s", batch("one", cursor="1"), 1)
    bad = LogBatch((LogLine(1, "two"), LogLine(1 << 70, "three")), "3")
    with pytest.raises(OverflowError):
        store.append_log("s", bad, 1)
    assert store.log_cursor("s") == "1"
    assert len(store.read_log("s", 0, 10)) == 1


def test_many_threads(store: SqliteStore, tmp_path: Path) -> None:
    """Writers and readers do not disturb each other."""
    store.insert_job(named(tmp_path, "a"))

    def write(host: int) -> None:
        store.open_log_stream("a", f"algo-{host}", f"s{host}", 1)
        for i in range(30):
            store.append_log(f"s{host}", batch(str(i), cursor=str(i)), 1)
            assert len(store.read_log(f"s{host}", 0, 100)) == i + 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))


def test_closing_twice_is_fine(tmp_path: Path) -> None:
    """Whoever shuts down need not count."""
    opened = SqliteStore(tmp_path / "state.sqlite")
    opened.close()
    opened.close()


def test_a_full_disk_is_said(store: SqliteStore, tmp_path: Path) -> None:
    """Nothing of the refused write stays; once there is room, it can be repeated."""
    store.insert_job(named(tmp_path, "a"))
    store.open_log_stream("a", "algo-1", "a/algo-1-1", 0)
    with store.database.transaction() as db:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages}")
    lines = batch(*["x" * 1000] * 100, cursor="c")
    with pytest.raises(StoreUnavailable, match=r"disk is full\. Free space on its disk, then try again"):
        store.append_log("a/algo-1-1", lines, 0)
    assert store.log_cursor("a/algo-1-1") is None
    with store.database.transaction() as db:
        db.execute("PRAGMA max_page_count = 1000000")
    store.append_log("a/algo-1-1", lines, 0)
    assert len(store.read_log("a/algo-1-1", 0, 1000)) == 100
