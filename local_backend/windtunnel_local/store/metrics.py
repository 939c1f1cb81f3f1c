"""The values of jobs' metrics, as time series."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence

from windtunnel_local.service.ground.errors import LogsNotFound
from windtunnel_local.service.ground.ports import MetricValue
from windtunnel_local.store.database import Table

_NAMES = "SELECT job, name FROM metric_series"


class MetricTable(Table):
    """The metrics' part of `service.ground.ports.Store`."""

    def append_metrics(self, stream: str, values: Sequence[MetricValue], scanned: int) -> None:
        """Store the values found in a log stream, and how many of its lines were searched, in one transaction.

        Infinite values and NaN are left out, as CloudWatch cannot hold them.

        Raises:
            LogsNotFound: there is no such stream.
        """
        with self.database.transaction() as db:
            row = db.execute("SELECT job FROM log_streams WHERE name = ?", (stream,)).fetchone()
            if row is None:
                raise LogsNotFound("The specified log stream does not exist.")
            db.execute("UPDATE log_streams SET scanned = ? WHERE name = ?", (scanned, stream))
            finite = [value for value in values if math.isfinite(value.value)]
            series = {value.name: _series(db, row[0], value) for value in finite}
            db.executemany(
                "INSERT INTO metric_values (series, timestamp_ms, value) VALUES (?, ?, ?)",
                [(series[value.name], value.timestamp_ms, value.value) for value in finite],
            )
            db.executemany(
                "UPDATE metric_series SET last_timestamp_ms = ?, last_value = ?"
                " WHERE id = ? AND last_timestamp_ms <= ?",
                [(v.timestamp_ms, v.value, series[v.name], v.timestamp_ms) for v in finite],
            )

    def metric_values(self, job: str, name: str, start_ms: int, end_ms: int) -> Sequence[tuple[int, float]]:
        rows = self.database.read(
            "SELECT timestamp_ms, value FROM metric_values"
            " WHERE series = (SELECT id FROM metric_series WHERE job = ? AND name = ?)"
            " AND timestamp_ms >= ? AND timestamp_ms < ? ORDER BY timestamp_ms, value",
            (job, name, start_ms, end_ms),
        )
        return [(timestamp_ms, value) for timestamp_ms, value in rows]

    def metric_names(
        self, job: str | None, name: str | None, after: tuple[str, str] | None, limit: int
    ) -> Sequence[tuple[str, str]]:
        given = [
            (text, value)
            for text, value in (("job = ?", job), ("name = ?", name), ("(job, name) > (?, ?)", after))
            if value is not None
        ]
        where = f" WHERE {' AND '.join(text for text, _ in given)}" if given else ""
        values: list[str] = []
        for _, value in given:
            values += [value] if isinstance(value, str) else value
        rows = self.database.read(f"{_NAMES}{where} ORDER BY job, name LIMIT ?", (*values, limit))
        return [(found_job, found_name) for found_job, found_name in rows]

    def last_metrics(self, job: str) -> Sequence[MetricValue]:
        rows = self.database.read(
            "SELECT name, last_timestamp_ms, last_value FROM metric_series WHERE job = ? ORDER BY name",
            (job,),
        )
        return [MetricValue(*row) for row in rows]


def _series(db: sqlite3.Connection, job: str, first: MetricValue) -> int:
    row = db.execute("SELECT id FROM metric_series WHERE job = ? AND name = ?", (job, first.name)).fetchone()
    if row is not None:
        return int(row[0])
    inserted = db.execute(
        "INSERT INTO metric_series (job, name, last_timestamp_ms, last_value) VALUES (?, ?, ?, ?)",
        (job, first.name, first.timestamp_ms, first.value),
    )
    return int(inserted.lastrowid or 0)
