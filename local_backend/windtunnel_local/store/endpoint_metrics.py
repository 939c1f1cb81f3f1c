"""Metrics of endpoints, one row for each minute: the values, and how often each occurred."""

from __future__ import annotations

import json
from collections.abc import Sequence

from windtunnel_local.service.ground.endpoint_store import EndpointMetric
from windtunnel_local.store.database import Table

_KEPT_MS = 15 * 24 * 3600 * 1000
"""15 days, as long as CloudWatch keeps values of one minute."""


class EndpointMetricTable(Table):
    """The endpoint metrics' part of `service.ground.ports.Store`."""

    def append_endpoint_metrics(self, metrics: Sequence[EndpointMetric]) -> None:
        with self.database.transaction() as db:
            db.executemany(
                "INSERT INTO endpoint_metrics (endpoint, variant, name, minute_ms, counts) VALUES (?, ?, ?, ?, ?)",
                [
                    (m.endpoint, m.variant, m.name, m.minute_ms, json.dumps(list(m.counts.items())))
                    for m in metrics
                ],
            )
            latest = max(metric.minute_ms for metric in metrics)
            db.execute("DELETE FROM endpoint_metrics WHERE minute_ms < ?", (latest - _KEPT_MS,))

    def endpoint_metrics(
        self, endpoint: str, variant: str, name: str, start_ms: int, end_ms: int
    ) -> Sequence[EndpointMetric]:
        rows = self.database.read(
            "SELECT minute_ms, counts FROM endpoint_metrics WHERE endpoint = ? AND variant = ? AND name = ?"
            " AND minute_ms >= ? AND minute_ms < ? ORDER BY minute_ms",
            (endpoint, variant, name, start_ms, end_ms),
        )
        return [
            EndpointMetric(endpoint, variant, name, minute_ms, dict(json.loads(counts)))
            for minute_ms, counts in rows
        ]

    def endpoint_metric_names(self) -> Sequence[tuple[str, str, str]]:
        rows = self.database.read(
            "SELECT DISTINCT endpoint, variant, name FROM endpoint_metrics ORDER BY endpoint, variant, name"
        )
        return [(endpoint, variant, name) for endpoint, variant, name in rows]
