"""The files of a transform job: which wait, how many are under way, and which have failed."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable

from windtunnel_local.service.data.listing import Item


class Work:
    """The files of one job, which all of its instances share. Thread-safe."""

    def __init__(self, items: Iterable[Item], retries: int) -> None:
        """``retries``: how often a file may be begun again because its container has ended."""
        self._retries = retries
        self._lock = threading.Lock()
        self._waiting = deque(items)
        self._under_way = 0
        self._attempts: Counter[str] = Counter()
        self._failures: list[tuple[Item, str]] = []
        self.total = len(self._waiting)
        self.finished = 0
        """The number of files that are stored or have failed."""

    @property
    def is_done(self) -> bool:
        """Whether all files are stored or have failed."""
        with self._lock:
            return not self._waiting and not self._under_way

    @property
    def failure_reason(self) -> str | None:
        """The job's FailureReason, if a file has failed; otherwise None."""
        with self._lock:
            if not self._failures:
                return None
            item, reason = self._failures[0]
            code, _, words = reason.partition(": ")
            return (
                f"{code}: See job logs for more information. Not transformed: {len(self._failures)} of {self.total}"
                f" files. The first, {item.uri}: {words}"
            )

    def take(self) -> Item | None:
        """The next waiting file; None if no file waits."""
        with self._lock:
            if not self._waiting:
                return None
            self._under_way += 1
            return self._waiting.popleft()

    def give_back(self, item: Item, *, counted: bool) -> None:
        """Put a file back, to be begun again. ``counted``: the file may be the reason why the container has ended."""
        with self._lock:
            self._attempts[item.uri] += counted
            if self._attempts[item.uri] <= self._retries:
                self._under_way -= 1
                self._waiting.append(item)
                return
        self.fail(
            item, f"AlgorithmError: the container has ended {self._retries + 1} times while it was asked"
        )

    def done(self) -> None:
        """Count one stored file."""
        with self._lock:
            self._under_way -= 1
            self.finished += 1

    def fail(self, item: Item, reason: str) -> None:
        """Count a file as failed; the others go on. ``reason``: begins with AWS's error code and a colon."""
        with self._lock:
            self._under_way -= 1
            self.finished += 1
            self._failures.append((item, reason))
