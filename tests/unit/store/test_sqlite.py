"""The record of jobs, tags and logs."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.clock import START
from tests.unit.service.samples import job, request
from windtunnel_local.service import lifecycle as events
from windtunnel_local.service.errors import (
    JobExists,
    JobNotFound,
    LogsNotFound,
    StoreUnavailable,
    ValidationFailed,
    WindtunnelError,
)
from windtunnel_local.service.lifecycle import advance, begin
from windtunnel_local.service.model import Job, JobQuery
from windtunnel_local.service.ports import LogBatch, LogLine, Store
from windtunnel_local.store import SqliteStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "state.sqlite")
    yield opened
    opened.close()


def named(tmp_path: Path, name: str, seconds: float = 0) -> Job:
    return replace(job(tmp_path, request(name)), lifecycle=begin(START + timedelta(seconds=seconds)))


def batch(*texts: str, cursor: str, at_ms: int = 1000) -> LogBatch:
    return LogBatch(tuple(LogLine(at_ms + i, text) for i, text in enumerate(texts)), cursor)


def test_it_is_the_port(store: SqliteStore) -> None:
    """The type checker compares every signature here."""
    port: Store = store
    assert port is store


def test_a_job_comes_back_as_it_was(store: SqliteStore, tmp_path: Path) -> None:
    """To the microsecond, through every field."""
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
    metric = {"MetricName": "m", "Value": 0.5, "Timestamp": datetime(2026, 1, 1, 1, 2, 3, 4, timezone.utc)}
    changed = replace(given, lifecycle=life, model_artifact="s3://b/m", final_metrics=(metric,))
    store.update_job(changed)
    assert store.get_job("a") == changed


def test_names_are_unique(store: SqliteStore, tmp_path: Path) -> None:
    """In AWS's words."""
    store.insert_job(named(tmp_path, "a"))
    with pytest.raises(JobExists, match="Training job names must be unique within an AWS account and region"):
        store.insert_job(named(tmp_path, "a"))


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


@pytest.mark.parametrize("sort_by", ["Name", "CreationTime", "Status"])
@pytest.mark.parametrize("sort_order", ["Ascending", "Descending"])
def test_pages_cover_the_list_once(store: SqliteStore, tmp_path: Path, sort_by: str, sort_order: str) -> None:
    """In any order, with equal sort values, and while jobs come and go."""
    for i in range(7):
        store.insert_job(named(tmp_path, f"job-{i}", seconds=i // 3))
    query = JobQuery(sort_by=sort_by, sort_order=sort_order, limit=2)  # type: ignore[arg-type]
    whole = [j.name for j in store.list_jobs(replace(query, limit=100))[0]]
    seen: list[str] = []
    token = None
    while True:
        jobs, token = store.list_jobs(replace(query, token=token))
        seen += [j.name for j in jobs]
        if len(seen) == 2:
            store.delete_job(seen[-1])  # the token's own row may vanish
        if token is None:
            break
    assert seen == whole
    assert sorted(seen) == [f"job-{i}" for i in range(7)]


def test_filters(store: SqliteStore, tmp_path: Path) -> None:
    """Each narrows the list."""
    for i in range(4):
        store.insert_job(named(tmp_path, f"job-{i}", seconds=10 * i))
    ended = named(tmp_path, "job-3", 30)
    later = START + timedelta(seconds=99)
    store.update_job(replace(ended, lifecycle=advance(ended.lifecycle, events.Failed("x"), later)))

    def names(**filters: Any) -> list[str]:
        query = JobQuery(sort_by="Name", sort_order="Ascending", **filters)
        return [found.name for found in store.list_jobs(query)[0]]

    assert names(name_contains="b-1") == ["job-1"]
    assert names(status="Failed") == ["job-3"]
    assert names(created_after=START + timedelta(seconds=10)) == ["job-2", "job-3"]
    assert names(created_before=START + timedelta(seconds=10)) == ["job-0"]
    assert names(modified_after=START + timedelta(seconds=50)) == ["job-3"]
    assert names(modified_before=START + timedelta(seconds=10), status="InProgress") == ["job-0"]
    assert [j.name for j in store.unfinished_jobs()] == ["job-0", "job-1", "job-2"]


@pytest.mark.parametrize("token", ["x", "e30=", "WyJOYW1lL0FzY2VuZGluZyIsICJhIiwgImEiXQ=="])
def test_a_foreign_token_is_refused(store: SqliteStore, token: str) -> None:
    """Nonsense, and a token of another order."""
    with pytest.raises(ValidationFailed, match="NextToken"):
        store.list_jobs(JobQuery(token=token))


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
    bad = LogBatch((LogLine(1, "two"), LogLine(None, "three")), "3")  # type: ignore[arg-type]
    with pytest.raises(sqlite3.IntegrityError):
        store.append_log("s", bad, 1)
    assert store.log_cursor("s") == "1"
    assert len(store.read_log("s", 0, 10)) == 1


def test_many_threads(store: SqliteStore, tmp_path: Path) -> None:
    """Writers and readers do not disturb each other."""
    store.insert_job(named(tmp_path, "a"))
    errors: list[Exception] = []

    def write(host: int) -> None:
        try:
            store.open_log_stream("a", f"algo-{host}", f"s{host}", 1)
            for i in range(30):
                store.append_log(f"s{host}", batch(str(i), cursor=str(i)), 1)
                assert len(store.read_log(f"s{host}", 0, 100)) == i + 1
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=write, args=(host,)) for host in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    """With a message that names the file and the way out."""
    path = tmp_path / "state.sqlite"
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(WindtunnelError, match="newer Windtunnel"):
        SqliteStore(path)


def test_closing_twice_is_fine(tmp_path: Path) -> None:
    """Whoever shuts down need not count."""
    opened = SqliteStore(tmp_path / "state.sqlite")
    opened.close()
    opened.close()


def test_a_full_disk_is_said(store: SqliteStore, tmp_path: Path) -> None:
    """Nothing of the refused write stays; once there is room, it can be repeated."""
    store.insert_job(named(tmp_path, "a"))
    store.open_log_stream("a", "algo-1", "a/algo-1-1", 0)
    (pages,) = store._writer.execute("PRAGMA page_count").fetchone()
    store._writer.execute(f"PRAGMA max_page_count = {pages}")
    lines = batch(*["x" * 1000] * 100, cursor="c")
    with pytest.raises(StoreUnavailable, match=r"disk is full\. Free space on its disk, then try again"):
        store.append_log("a/algo-1-1", lines, 0)
    assert store.log_cursor("a/algo-1-1") is None
    store._writer.execute("PRAGMA max_page_count = 1000000")
    store.append_log("a/algo-1-1", lines, 0)
    assert len(store.read_log("a/algo-1-1", 0, 1000)) == 100
