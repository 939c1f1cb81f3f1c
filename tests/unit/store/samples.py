"""Jobs, log batches, and what a query costs."""

from __future__ import annotations

from collections.abc import Sequence
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


def named(tmp_path: Path, name: str, seconds: float = 0, **members: Any) -> Job:
    """A new job, created so long after the test's start."""
    return replace(
        job(tmp_path, request(name, **members)), lifecycle=begin(START + timedelta(seconds=seconds))
    )


def batch(*texts: str, cursor: str, at_ms: int = 1000) -> LogBatch:
    """Lines a millisecond apart."""
    return LogBatch(tuple(LogLine(at_ms + i, text) for i, text in enumerate(texts)), cursor)


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
