"""`Store` on SQLite.

One connection writes and one reads, each behind its own lock: with a write-ahead log
the readers never wait for a commit to reach the disk.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from windtunnel_local.service.errors import (
    JobExists,
    JobNotFound,
    LogsNotFound,
    StoreUnavailable,
    WindtunnelError,
)
from windtunnel_local.service.model import TERMINAL, Job, JobQuery
from windtunnel_local.service.ports import LogBatch, LogEvent, LogStream
from windtunnel_local.store.codec import PageToken, decode_job, decode_token, encode_record, microseconds

SCHEMA_VERSION = 1
_BUSY_TIMEOUT_S = 10.0
_FOREVER_MS = 2**62
_LAST_CHARACTER = "\U0010ffff"

_JOB = "SELECT name, arn, request, record FROM jobs"
_EVENTS = (
    "SELECT sequence, timestamp_ms, ingestion_ms, message FROM log_events"
    " WHERE stream = (SELECT id FROM log_streams WHERE name = ?)"
)
_SORT_COLUMNS = {"Name": "name", "CreationTime": "created_us", "Status": "status"}


class SqliteStore:
    """Jobs, tags and logs in one file; see `service.ports.Store`. Safe from several threads."""

    def __init__(self, path: Path) -> None:
        """Open the file, and make it if it is not there.

        Raises:
            WindtunnelError: the file was written by a newer version.
        """
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        self._writer = _connect(path)
        try:
            _migrate(self._writer, path)
            self._reader = _connect(path)
        except BaseException:
            self._writer.close()
            raise

    def close(self) -> None:
        """Close the file; calls after this raise. Idempotent."""
        with self._write_lock, self._read_lock:
            self._reader.close()
            self._writer.close()

    # --- jobs ---

    def insert_job(self, job: Job) -> None:
        """Record a new job; raises ``JobExists``."""
        with self._transaction() as db:
            if db.execute("SELECT 1 FROM jobs WHERE name = ?", (job.name,)).fetchone():
                raise JobExists(
                    "Training job names must be unique within an AWS account and region, and a training job"
                    f" with this name already exists ({job.arn})"
                )
            db.execute(
                "INSERT INTO jobs (name, arn, status, created_us, modified_us, request, record)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    job.name,
                    job.arn,
                    job.lifecycle.status,
                    microseconds(job.lifecycle.created),
                    microseconds(job.lifecycle.modified),
                    json.dumps(dict(job.request)),
                    encode_record(job),
                ),
            )

    def get_job(self, name: str) -> Job | None:
        """The job, or None."""
        rows = self._read(f"{_JOB} WHERE name = ?", (name,))
        return decode_job(*rows[0]) if rows else None

    def update_job(self, job: Job) -> None:
        """Replace the record of an existing job; its request stays. Raises ``JobNotFound``."""
        with self._transaction() as db:
            done = db.execute(
                "UPDATE jobs SET status = ?, modified_us = ?, record = ? WHERE name = ?",
                (job.lifecycle.status, microseconds(job.lifecycle.modified), encode_record(job), job.name),
            )
            if done.rowcount == 0:
                raise JobNotFound

    def delete_job(self, name: str) -> None:
        """Remove the job with its tags and logs; raises ``JobNotFound``."""
        with self._transaction() as db:
            if db.execute("DELETE FROM jobs WHERE name = ?", (name,)).rowcount == 0:
                raise JobNotFound

    def list_jobs(self, query: JobQuery) -> tuple[Sequence[Job], str | None]:
        """One page and the token of the next (None at the end).

        Raises:
            ValidationFailed: the token is not one that was given out for this order.
        """
        conditions, values = _filters(query)
        order = f"{query.sort_by}/{query.sort_order}"
        column = _SORT_COLUMNS[query.sort_by]
        descending = query.sort_order == "Descending"
        if query.token is not None:
            token = decode_token(query.token, order)
            conditions.append(f"({column}, name) {'<' if descending else '>'} (?, ?)")
            values += [token.value, token.name]
        direction = "DESC" if descending else "ASC"
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        # Only constants of this file are put into the text; every value is bound.
        rows = self._read(
            f"{_JOB}{where} ORDER BY {column} {direction}, name {direction} LIMIT ?",
            (*values, query.limit + 1),
        )
        jobs = [decode_job(*row) for row in rows[: query.limit]]
        if len(rows) <= query.limit or not jobs:
            return jobs, None
        return jobs, PageToken(order, _sort_value(jobs[-1], query), jobs[-1].name).encode()

    def unfinished_jobs(self) -> Sequence[Job]:
        """Jobs not in a terminal status, oldest first."""
        marks = ", ".join("?" for _ in TERMINAL)
        rows = self._read(
            f"{_JOB} WHERE status NOT IN ({marks}) ORDER BY created_us, name", tuple(sorted(TERMINAL))
        )
        return [decode_job(*row) for row in rows]

    # --- tags ---

    def set_tags(self, arn: str, tags: Mapping[str, str]) -> None:
        """Add or overwrite tags; raises ``JobNotFound``."""
        with self._transaction() as db:
            if not db.execute("SELECT 1 FROM jobs WHERE arn = ?", (arn,)).fetchone():
                raise JobNotFound
            db.executemany(
                "INSERT INTO tags (arn, key, value) VALUES (?, ?, ?)"
                " ON CONFLICT (arn, key) DO UPDATE SET value = excluded.value",
                [(arn, key, value) for key, value in tags.items()],
            )

    def remove_tags(self, arn: str, keys: Sequence[str]) -> None:
        """Remove tags; unknown keys are no error."""
        with self._transaction() as db:
            db.executemany("DELETE FROM tags WHERE arn = ? AND key = ?", [(arn, key) for key in keys])

    def tags(self, arn: str) -> Mapping[str, str]:
        """Tags in order of their keys."""
        return dict(self._read("SELECT key, value FROM tags WHERE arn = ? ORDER BY key", (arn,)))

    # --- logs ---

    def open_log_stream(self, job: str, host: str, name: str, created_ms: int) -> None:
        """Create the stream if it is not there. Idempotent."""
        with self._transaction() as db:
            db.execute(
                "INSERT INTO log_streams (name, job, host, created_ms) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (name) DO NOTHING",
                (name, job, host, created_ms),
            )

    def append_log(self, stream: str, batch: LogBatch, ingestion_ms: int) -> None:
        """Append lines and their cursor in one transaction: a crash keeps both or neither.

        Raises:
            LogsNotFound: no such stream.
        """
        with self._transaction() as db:
            row = db.execute("SELECT id, events FROM log_streams WHERE name = ?", (stream,)).fetchone()
            if row is None:
                raise LogsNotFound("The specified log stream does not exist.")
            stream_id, count = row
            db.executemany(
                "INSERT INTO log_events (stream, sequence, timestamp_ms, ingestion_ms, message)"
                " VALUES (?, ?, ?, ?, ?)",
                [
                    (stream_id, count + i, line.timestamp_ms, ingestion_ms, _storable(line.text))
                    for i, line in enumerate(batch.lines)
                ],
            )
            db.execute("UPDATE log_streams SET cursor = ? WHERE id = ?", (batch.cursor, stream_id))
            if batch.lines:
                db.execute(
                    "UPDATE log_streams SET events = events + ?, last_event_ms = ?, last_ingestion_ms = ?,"
                    " first_event_ms = coalesce(first_event_ms, ?) WHERE id = ?",
                    (
                        len(batch.lines),
                        batch.lines[-1].timestamp_ms,
                        ingestion_ms,
                        batch.lines[0].timestamp_ms,
                        stream_id,
                    ),
                )

    def log_cursor(self, stream: str) -> str | None:
        """Where `Runner.logs` resumes for this stream."""
        rows = self._read("SELECT cursor FROM log_streams WHERE name = ?", (stream,))
        return rows[0][0] if rows else None

    def log_streams(self, prefix: str) -> Sequence[LogStream]:
        """Streams whose name starts with ``prefix``, by name."""
        rows = self._read(
            "SELECT name, job, host, created_ms, first_event_ms, last_event_ms, last_ingestion_ms, events"
            " FROM log_streams WHERE name >= ? AND name < ? ORDER BY name",
            (prefix, prefix + _LAST_CHARACTER),
        )
        return [LogStream(*row) for row in rows]

    def read_log(
        self, stream: str, first: int, limit: int, start_ms: int | None = None, end_ms: int | None = None
    ) -> Sequence[LogEvent]:
        """Up to ``limit`` events with sequence >= first and start_ms <= timestamp < end_ms, in order."""
        rows = self._read(
            f"{_EVENTS} AND sequence >= ? AND timestamp_ms >= ? AND timestamp_ms < ?"
            " ORDER BY sequence LIMIT ?",
            (stream, first, *_window(start_ms, end_ms), limit),
        )
        return [LogEvent(*row) for row in rows]

    def read_log_before(
        self, stream: str, before: int, limit: int, start_ms: int | None = None, end_ms: int | None = None
    ) -> Sequence[LogEvent]:
        """The last ``limit`` events with sequence < before and start_ms <= timestamp < end_ms, in order."""
        rows = self._read(
            f"{_EVENTS} AND sequence < ? AND timestamp_ms >= ? AND timestamp_ms < ?"
            " ORDER BY sequence DESC LIMIT ?",
            (stream, before, *_window(start_ms, end_ms), limit),
        )
        return [LogEvent(*row) for row in reversed(rows)]

    # --- connections ---

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit at the end, roll back on any exception.

        Raises:
            StoreUnavailable: the file cannot be written.
        """
        with self._write_lock:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException as error:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    raise StoreUnavailable(
                        f"The record of jobs in this Windtunnel home cannot be written: {error}. Free space on"
                        " its disk, then try again."
                    ) from error
                raise

    def _read(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        with self._read_lock:
            return self._reader.execute(sql, values).fetchall()


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    # FULL: a commit is on the disk when the call returns, also when the machine loses power.
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    return db


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    """Create the tables in a new file; refuse a file from the future."""
    db.execute("BEGIN IMMEDIATE")
    try:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise WindtunnelError(
                f"{path} was written by a newer Windtunnel (schema {version}, this one knows"
                f" {SCHEMA_VERSION}). Upgrade Windtunnel, or set WINDTUNNEL_HOME to another folder."
            )
        if version == 0:
            for statement in _statements(
                resources.files("windtunnel_local.store").joinpath("schema.sql").read_text()
            ):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would commit behind our back."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _filters(query: JobQuery) -> tuple[list[str], list[Any]]:
    """Conditions (constants) and the values bound to them."""
    wanted: list[tuple[str, Any]] = [
        ("instr(name, ?) > 0", query.name_contains),
        ("status = ?", query.status),
        ("created_us > ?", query.created_after and microseconds(query.created_after)),
        ("created_us < ?", query.created_before and microseconds(query.created_before)),
        ("modified_us > ?", query.modified_after and microseconds(query.modified_after)),
        ("modified_us < ?", query.modified_before and microseconds(query.modified_before)),
    ]
    given = [(condition, value) for condition, value in wanted if value is not None]
    return [condition for condition, _ in given], [value for _, value in given]


def _sort_value(job: Job, query: JobQuery) -> str | int:
    if query.sort_by == "CreationTime":
        return microseconds(job.lifecycle.created)
    return job.name if query.sort_by == "Name" else job.lifecycle.status


def _window(start_ms: int | None, end_ms: int | None) -> tuple[int, int]:
    return (
        -_FOREVER_MS if start_ms is None else start_ms,
        _FOREVER_MS if end_ms is None else end_ms,
    )


def _storable(text: str) -> str:
    """The line, with lone surrogates (undecodable bytes) replaced: SQLite keeps UTF-8 only."""
    return text.encode("utf-8", "replace").decode("utf-8")
