"""The tables of a new file, and those of an older version brought up to date."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from windtunnel_local.store.codec import microseconds, read_time
from windtunnel_local.store.opening import APPLICATION_ID, SCHEMA_VERSION

_log = logging.getLogger(__name__)

_REWRITTEN_BYTES = 256 << 20
"""Up to this size an older file is written anew, so that it can give space back: about 2 s."""


def prepare(db: sqlite3.Connection, path: Path) -> None:
    """Create the tables in a new file, or bring an older one up to date, in one transaction."""
    if db.execute("PRAGMA user_version").fetchone()[0] == 0:
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before the first page is written
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    # Tables are renamed below: what refers to them by name is to find their successors.
    db.execute("PRAGMA foreign_keys = OFF")
    db.execute("PRAGMA legacy_alter_table = ON")
    db.execute("BEGIN IMMEDIATE")
    try:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            _create(db)
        elif version == 1:
            _from_1(db)
        else:
            if version == 2:  # which knew nothing but jobs
                _create(db, "CREATE TABLE resources")
            if version in (2, 3):
                _create(db, "invocations")
                _create(db, "endpoint_metrics")
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("PRAGMA legacy_alter_table = OFF")
    if version == 1 and path.stat().st_size <= _REWRITTEN_BYTES:
        _rewrite(db)


def _create(db: sqlite3.Connection, wanted: str = "") -> None:
    """Run the schema's statements, or those with ``wanted`` in them."""
    for statement in _statements(
        resources.files("windtunnel_local.store").joinpath("schema.sql").read_text()
    ):
        if wanted in statement:
            db.execute(statement)


def _from_1(db: sqlite3.Connection) -> None:
    """Schema 1 kept a job in one row, took a line's time as it came, and knew no metric values."""
    for index in ("jobs_by_creation", "jobs_by_status", "log_streams_by_job"):
        db.execute(f"DROP INDEX {index}")
    for table in ("jobs", "tags", "log_streams"):
        db.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    _create(db)
    for row in db.execute("SELECT name, arn, status, created_us, modified_us, request, record FROM old_jobs"):
        name, arn, status, created_us, modified_us, request, record = row
        data = json.loads(record)
        ended = read_time(data["training_end"])
        db.execute(
            "INSERT INTO jobs (name, arn, status, secondary, created_us, modified_us, ended_us)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (name, arn, status, data["secondary"], created_us, modified_us, ended and microseconds(ended)),
        )
        db.execute(
            "INSERT INTO job_documents (name, request, record) VALUES (?, ?, ?)", (name, request, record)
        )
    db.execute("INSERT INTO tags (arn, key, value) SELECT arn, key, value FROM old_tags")
    db.execute(
        "INSERT INTO log_streams (id, name, job, host, created_ms, first_event_ms, last_event_ms,"
        " last_ingestion_ms, events, cursor) SELECT id, name, job, host, created_ms, first_event_ms,"
        " last_event_ms, last_ingestion_ms, events, cursor FROM old_log_streams"
    )
    _order_times(db)
    for table in ("jobs", "tags", "log_streams"):
        db.execute(f"DROP TABLE old_{table}")


def _order_times(db: sqlite3.Connection) -> None:
    """A line whose clock had stepped back takes the time of the line before it."""
    corrections = []
    stream, latest = None, 0
    for row in db.execute("SELECT stream, sequence, timestamp_ms FROM log_events ORDER BY stream, sequence"):
        if row[0] != stream:
            stream, latest = row[0], row[2]
        elif row[2] < latest:
            corrections.append((latest, row[0], row[1]))
        else:
            latest = row[2]
    db.executemany("UPDATE log_events SET timestamp_ms = ? WHERE stream = ? AND sequence = ?", corrections)
    db.execute(
        "UPDATE log_streams SET last_event_ms = (SELECT timestamp_ms FROM log_events"
        " WHERE stream = log_streams.id ORDER BY sequence DESC LIMIT 1)"
    )


def _rewrite(db: sqlite3.Connection) -> None:
    """Rewrite the file so that free pages can be given back. If that fails, the file is as good as before."""
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    try:
        db.execute("VACUUM")
    except sqlite3.OperationalError as error:
        _log.warning("The record of jobs stays as large as it is: %s", error)


def _statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one: `executescript` would commit behind our back."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
