"""A clock that stands still until a test moves it."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


class FakeClock:
    """`Clock`; its clocks move by `advance` and `set` only."""

    def __init__(self, start: datetime = START) -> None:
        """It stands at ``start``."""
        self._lock = threading.Lock()
        self._now = start
        self._passed_s = 0.0

    def now(self) -> datetime:
        """The time it was last moved to."""
        with self._lock:
            return self._now

    def monotonic(self) -> float:
        """All seconds it was moved by."""
        with self._lock:
            return self._passed_s

    def set(self, seconds: float) -> None:
        """Somebody sets the wall clock, by so much forwards or (negative) backwards; no time passes."""
        with self._lock:
            self._now += timedelta(seconds=seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            self._now += timedelta(seconds=seconds)
            self._passed_s += seconds
