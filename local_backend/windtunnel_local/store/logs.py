"""Log streams and their lines."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Literal

from windtunnel_local.service.ground.containers import LogBatch
from windtunnel_local.service.ground.errors import LogsNotFound
from windtunnel_local.service.ground.ports import LogEvent, LogStream
from windtunnel_local.store.database import Table

_LAST_CHARACTER = "\U0010ffff"
_LAST_SEQUENCE = 2**62
_ALL = -1  # in SQLite's LIMIT: no limit
_MOST_CHARACTERS = 4 << 20
"""The most characters that one call reads: a line may have a megabyte, and callers ask for thousands of lines."""
_STREAM = (
    "SELECT name, job, host, created_ms, first_event_ms, last_event_ms, last_ingestion_ms, events, scanned"
    " FROM log_streams"
)
_LAST = "ifnull(last_event_ms, 0)"
_JOBS = "name >= '0'"
"""True for jobs' streams. Names of endpoints' streams begin with a slash, which sorts right before "0"."""
_EVENTS = (
    "SELECT sequence, timestamp_ms, ingestion_ms, message FROM log_events"
    " WHERE stream = ? AND sequence >= ? AND sequence < ?"
)


class LogTable(Table):
    """The logs' part of `service.ground.ports.Store`."""

    def created_ms(self) -> int:
        return int(self.database.read("SELECT created_ms FROM home")[0][0])

    # --- streams ---

    def open_log_stream(self, job: str | None, host: str, name: str, created_ms: int) -> None:
        with self.database.transaction() as db:
            db.execute(
                "INSERT INTO log_streams (name, job, host, created_ms) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (name) DO NOTHING",
                (name, job, host, created_ms),
            )

    def log_stream(self, name: str) -> LogStream | None:
        rows = self.database.read(f"{_STREAM} WHERE name = ?", (name,))
        return LogStream(*rows[0]) if rows else None

    def log_streams(
        self, prefix: str, after: str | None = None, limit: int | None = None, descending: bool = False
    ) -> Sequence[LogStream]:
        low, high, sign = prefix or "0", prefix + _LAST_CHARACTER, ">="
        if after is not None and descending:
            high = min(high, after)
        elif after is not None and after >= low:
            low, sign = after, ">"
        rows = self.database.read(
            f"{_STREAM} WHERE name {sign} ? AND name < ? ORDER BY name {'DESC' if descending else 'ASC'} LIMIT ?",
            (low, high, _ALL if limit is None else limit),
        )
        return [LogStream(*row) for row in rows]

    def latest_log_streams(
        self, after: tuple[int, str] | None, limit: int, descending: bool
    ) -> Sequence[LogStream]:
        sign, direction = ("<", "DESC") if descending else (">", "ASC")
        # No row comparison, (a, b) > (?, ?): for an expression SQLite would not use the index then.
        behind = f" AND {_LAST} {sign}= ? AND ({_LAST} {sign} ? OR name {sign} ?)" if after else ""
        rows = self.database.read(
            f"{_STREAM} INDEXED BY log_streams_by_last_event WHERE {_JOBS}{behind}"
            f" ORDER BY {_LAST} {direction}, name {direction} LIMIT ?",
            (*((after[0], *after) if after else ()), limit),
        )
        return [LogStream(*row) for row in rows]

    def log_streams_begun(self, after: tuple[int, str], before_ms: int, limit: int) -> Sequence[LogStream]:
        rows = self.database.read(
            f"{_STREAM} INDEXED BY log_streams_by_first_event"
            f" WHERE (first_event_ms, name) > (?, ?) AND first_event_ms < ? AND {_JOBS}"
            " ORDER BY first_event_ms, name LIMIT ?",
            (*after, before_ms, limit),
        )
        return [LogStream(*row) for row in rows]

    def log_streams_across(self, moment_ms: int) -> Sequence[LogStream]:
        rows = self.database.read(
            f"{_STREAM} INDEXED BY log_streams_by_first_event"
            f" WHERE first_event_ms < ? AND last_event_ms >= ? AND {_JOBS} ORDER BY first_event_ms, name",
            (moment_ms, moment_ms),
        )
        return [LogStream(*row) for row in rows]

    def log_cursor(self, stream: str) -> str | None:
        rows = self.database.read("SELECT cursor FROM log_streams WHERE name = ?", (stream,))
        return rows[0][0] if rows else None

    # --- lines ---

    def append_log(self, stream: str, batch: LogBatch, ingestion_ms: int) -> None:
        """Append lines and their cursor in one transaction: a crash keeps both or neither.

        A line that is earlier than the line before gets the time of that line, as the clock may have been set back.

        Raises:
            LogsNotFound: there is no such stream.
        """
        with self.database.transaction() as db:
            row = db.execute(
                "SELECT id, events, last_event_ms FROM log_streams WHERE name = ?", (stream,)
            ).fetchone()
            if row is None:
                raise LogsNotFound("The specified log stream does not exist.")
            stream_id, count, latest = row
            rows = []
            for sequence, line in enumerate(batch.lines, count):
                latest = line.timestamp_ms if latest is None else max(latest, line.timestamp_ms)
                rows.append((stream_id, sequence, latest, ingestion_ms, _storable(line.text)))
            db.executemany(
                "INSERT INTO log_events (stream, sequence, timestamp_ms, ingestion_ms, message)"
                " VALUES (?, ?, ?, ?, ?)",
                rows,
            )
            db.execute("UPDATE log_streams SET cursor = ? WHERE id = ?", (batch.cursor, stream_id))
            if rows:
                db.execute(
                    "UPDATE log_streams SET events = events + ?, last_event_ms = ?, last_ingestion_ms = ?,"
                    " first_event_ms = coalesce(first_event_ms, ?) WHERE id = ?",
                    (len(rows), latest, ingestion_ms, rows[0][2], stream_id),
                )

    def read_log(
        self, stream: str, first: int, limit: int, start_ms: int | None = None, end_ms: int | None = None
    ) -> Sequence[LogEvent]:
        return self._read(stream, (first, _LAST_SEQUENCE), limit, (start_ms, end_ms), "ASC")

    def read_log_before(
        self, stream: str, before: int, limit: int, start_ms: int | None = None, end_ms: int | None = None
    ) -> Sequence[LogEvent]:
        return self._read(stream, (0, before), limit, (start_ms, end_ms), "DESC")[::-1]

    def _read(
        self,
        stream: str,
        sequences: tuple[int, int],
        limit: int,
        times_ms: tuple[int | None, int | None],
        order: Literal["ASC", "DESC"],
    ) -> list[LogEvent]:
        first, before = sequences
        with self.database.reader() as db:
            found = _range(db, stream, *times_ms)
            if found is None:
                return []
            stream_id, begin, end = found
            values = (stream_id, max(begin, first), min(end, before), limit)
            with closing(db.execute(f"{_EVENTS} ORDER BY sequence {order} LIMIT ?", values)) as rows:
                return _bounded(rows)


def _bounded(rows: Iterable[tuple[int, int, int, str]]) -> list[LogEvent]:
    """The first rows, at least one if there is one, until `_MOST_CHARACTERS` is exceeded."""
    events: list[LogEvent] = []
    size = 0
    for row in rows:
        events.append(LogEvent(*row))
        size += len(events[-1].message)
        if size > _MOST_CHARACTERS:
            break
    return events


def _range(
    db: sqlite3.Connection, stream: str, start_ms: int | None, end_ms: int | None
) -> tuple[int, int, int] | None:
    """The stream's id, and the first and (exclusive) last sequence number between two times; None: no such stream."""
    row = db.execute("SELECT id, events FROM log_streams WHERE name = ?", (stream,)).fetchone()
    if row is None:
        return None
    stream_id, count = row
    begin = 0 if start_ms is None else _first_at(db, stream_id, count, start_ms)
    end = count if end_ms is None else _first_at(db, stream_id, count, end_ms)
    return stream_id, begin, end


def _first_at(db: sqlite3.Connection, stream_id: int, count: int, moment_ms: int) -> int:
    """The first sequence number at or after a time, by binary search: reads 20 rows of a million."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        (time_ms,) = db.execute(
            "SELECT timestamp_ms FROM log_events WHERE stream = ? AND sequence = ?", (stream_id, middle)
        ).fetchone()
        if time_ms < moment_ms:
            low = middle + 1
        else:
            high = middle
    return low


def _storable(text: str) -> str:
    """The line, with lone surrogates (undecodable bytes) replaced: SQLite keeps UTF-8 only."""
    return text.encode("utf-8", "replace").decode("utf-8")
