"""The files of a job: those that wait, those under way, and what has become of the others."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable

from windtunnel_local.service.data.listing import Item


class Work:
    """Shared by all instances of a job. Safe from several threads."""

    def __init__(self, items: Iterable[Item], retries: int) -> None:
        """``retries``: how often a file may be begun again because its container has gone."""
        self._retries = retries
        self._lock = threading.Lock()
        self._waiting = deque(items)
        self._under_way = 0
        self._attempts: Counter[str] = Counter()
        self._failures: list[tuple[Item, str]] = []
        self.total = len(self._waiting)
        self.finished = 0
        """Files that are through, with whatever result."""

    @property
    def is_done(self) -> bool:
        """Whether nothing waits and nothing is under way."""
        with self._lock:
            return not self._waiting and not self._under_way

    @property
    def failure_reason(self) -> str | None:
        """Why the job has failed, if it has."""
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
        """The next file; None: none waits."""
        with self._lock:
            if not self._waiting:
                return None
            self._under_way += 1
            return self._waiting.popleft()

    def give_back(self, item: Item, *, counted: bool) -> None:
        """It is to be begun again. ``counted``: it may have been the file that has ended the container."""
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
        """One file is stored."""
        with self._lock:
            self._under_way -= 1
            self.finished += 1

    def fail(self, item: Item, reason: str) -> None:
        """It cannot be transformed; the others go on. ``reason``: begins with AWS's word for it and a colon."""
        with self._lock:
            self._under_way -= 1
            self.finished += 1
            self._failures.append((item, reason))
