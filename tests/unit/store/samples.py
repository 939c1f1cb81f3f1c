"""Jobs, log batches, and a file as schema 1 wrote it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.fakes.clock import START
from tests.unit.service.samples import job, request
from windtunnel_local.service.ground.containers import LogBatch, LogLine
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.lifecycle import begin
from windtunnel_local.store import SqliteStore
from windtunnel_local.store.codec import encode_record, microseconds

SCHEMA_1 = """
CREATE TABLE jobs (
    name TEXT PRIMARY KEY, arn TEXT NOT NULL UNIQUE, status TEXT NOT NULL, created_us INTEGER NOT NULL,
    modified_us INTEGER NOT NULL, request TEXT NOT NULL, record TEXT NOT NULL);
CREATE INDEX jobs_by_creation ON jobs (created_us, name);
CREATE INDEX jobs_by_status ON jobs (status, name);
CREATE TABLE tags (
    arn TEXT NOT NULL REFERENCES jobs (arn) ON DELETE CASCADE, key TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (arn, key)) WITHOUT ROWID;
CREATE TABLE log_streams (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    job TEXT NOT NULL REFERENCES jobs (name) ON DELETE CASCADE, host TEXT NOT NULL,
    created_ms INTEGER NOT NULL, first_event_ms INTEGER, last_event_ms INTEGER, last_ingestion_ms INTEGER,
    events INTEGER NOT NULL DEFAULT 0, cursor TEXT);
CREATE INDEX log_streams_by_job ON log_streams (job);
CREATE TABLE log_events (
    stream INTEGER NOT NULL REFERENCES log_streams (id) ON DELETE CASCADE, sequence INTEGER NOT NULL,
    timestamp_ms INTEGER NOT NULL, ingestion_ms INTEGER NOT NULL, message TEXT NOT NULL,
    PRIMARY KEY (stream, sequence)) WITHOUT ROWID;
PRAGMA user_version = 1;
"""
_LATER_KEYS = ("slot", "spot", "warm_pool")


def named(tmp_path: Path, name: str, seconds: float = 0, **members: Any) -> Job:
    """A new job, created so long after the test's start."""
    return replace(
        job(tmp_path, request(name, **members)), lifecycle=begin(START + timedelta(seconds=seconds))
    )


def batch(*texts: str, cursor: str, at_ms: int = 1000) -> LogBatch:
    """Lines a millisecond apart."""
    return LogBatch(tuple(LogLine(at_ms + i, text) for i, text in enumerate(texts)), cursor)


def schema_1(path: Path, jobs: Sequence[Job], times_ms: Sequence[int] = ()) -> None:
    """A file of schema 1: each job with a tag and a stream, the stream with a line at each time."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(SCHEMA_1)
        for number, given in enumerate(jobs):
            record = json.loads(encode_record(given))
            life = given.lifecycle
            db.execute(
                "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    given.name,
                    given.arn,
                    life.status,
                    microseconds(life.created),
                    microseconds(life.modified),
                    json.dumps(dict(given.request)),
                    json.dumps({key: value for key, value in record.items() if key not in _LATER_KEYS}),
                ),
            )
            db.execute("INSERT INTO tags VALUES (?, 'team', 'a')", (given.arn,))
            db.execute(
                "INSERT INTO log_streams VALUES (?, ?, ?, 'algo-1', 1, ?, ?, 9, ?, 'cursor')",
                (
                    number,
                    f"{given.name}/algo-1-1",
                    given.name,
                    *((times_ms[0], times_ms[-1]) if times_ms else (None, None)),
                    len(times_ms),
                ),
            )
            db.executemany(
                "INSERT INTO log_events VALUES (?, ?, ?, 9, ?)",
                [(number, i, time_ms, f"line {i}") for i, time_ms in enumerate(times_ms)],
            )
        db.commit()


def plan(store: SqliteStore, sql: str, values: Sequence[Any]) -> str:
    """How SQLite goes about a query."""
    return "\n".join(row[3] for row in store.database.read(f"EXPLAIN QUERY PLAN {sql}", tuple(values)))


class Steps:
    """Counts what SQLite's machine does while a test reads: its virtual steps, in tens."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def of(self, call: Any) -> int:
        """The steps that the call takes on the store's readers."""
        count = 0

        def tick() -> int:
            nonlocal count
            count += 1
            return 0

        with self._store.database.reader() as reader:
            reader.set_progress_handler(tick, 10)
        try:
            call()  # takes the connection that was given back last
        finally:
            reader.set_progress_handler(None, 0)
        return count
