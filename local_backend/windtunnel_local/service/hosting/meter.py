"""CloudWatch's metrics of endpoints (requests, errors, latencies): collected in memory, stored once a minute.

Names, units and dimensions: AWS, "Monitor Amazon SageMaker AI with Amazon CloudWatch". Times have three digits.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from http import HTTPStatus

from windtunnel_local.service.ground.endpoint_store import EndpointMetric
from windtunnel_local.service.ground.errors import StoreUnavailable
from windtunnel_local.service.ground.ports import Ports

_MINUTE_MS = 60_000
_DIGITS = 3

_Series = tuple[str, str, str]
"""Endpoint, variant and metric."""


class Meter:
    """Collects the metrics of all endpoints. Thread-safe; `add` only writes to memory."""

    def __init__(self, ports: Ports) -> None:
        """Starts without values."""
        self._ports = ports
        self._lock = threading.Lock()
        self._minute = 0
        self._values: defaultdict[_Series, Counter[float]] = defaultdict(Counter)
        self._unwritten: list[EndpointMetric] = []
        """Minutes that are over but not stored yet."""

    def add(
        self, endpoint: str, variant: str, status: int, model_s: float, overhead_s: float | None = None
    ) -> None:
        """Count one request to a container. ``status``: the answer's HTTP status, 0 if there was none.

        ``overhead_s``: None for asynchronous invocations, for which AWS publishes no OverheadLatency or Invocations.
        """
        is_error = status >= HTTPStatus.BAD_REQUEST or not status
        is_theirs = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
        found = {
            "ModelLatency": _microseconds(model_s),
            "Invocation4XXErrors": float(is_theirs),
            "Invocation5XXErrors": float(is_error and not is_theirs),
        }
        if overhead_s is not None:
            found |= {"Invocations": 1.0, "OverheadLatency": _microseconds(overhead_s)}
        with self._lock:
            for name, value in found.items():
                self._values[endpoint, variant, name][value] += 1

    def flush(self, *, all_of_it: bool = False) -> None:
        """Store the collected values, if their minute is over or ``all_of_it``. If the store fails, they are kept."""
        now = self._ports.now_ms() // _MINUTE_MS * _MINUTE_MS
        with self._lock:
            self._minute = self._minute or now
            if now != self._minute or all_of_it:
                self._unwritten += [
                    EndpointMetric(*series, self._minute, dict(counts))
                    for series, counts in self._values.items()
                ]
                self._minute, self._values = now, defaultdict(Counter)
            rows, self._unwritten = self._unwritten, []
        if not rows:
            return
        try:
            self._ports.store.append_endpoint_metrics(rows)
        except StoreUnavailable:
            with self._lock:
                self._unwritten = rows + self._unwritten


def _microseconds(seconds: float) -> float:
    return float(f"{seconds * 1e6:.{_DIGITS}g}")
