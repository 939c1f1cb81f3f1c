"""A position in a container's log, from which each further line is delivered exactly once. Pure.

The engine can replay a log only "since" a timestamp, and its order is not quite
that of its timestamps: stdout and stderr are stamped before they meet, and a long
line is stamped at its first part and complete only at its last. So a cursor says:
replay from ``since_ns``, and skip the first ``skip`` lines of what comes. ``since_ns``
trails the newest line far enough that nothing earlier can still arrive, unless the
clock is set back: from then on only the number of lines tells.
"""

from __future__ import annotations

import heapq
from calendar import timegm
from dataclasses import dataclass, field
from functools import lru_cache
from time import strptime

from windtunnel_local.service.ground.containers import MAX_LINE_BYTES, LogLine

SLACK_NS = 2_000_000_000
"""How far apart in time two messages may be that the engine wrote in the wrong order."""

_NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Cursor:
    """A position in a log. ``str(cursor)`` and `Cursor.parse` are inverse."""

    since_ns: int = 0
    """Unix nanoseconds to replay from; 0: the log's start."""
    skip: int = 0
    """Lines of the replay that were delivered before."""
    total: int = 0
    """Lines delivered since the log's start: where to go on if timestamps turn out useless."""

    def __str__(self) -> str:
        return f"{self.since_ns}:{self.skip}:{self.total}"

    @classmethod
    def parse(cls, text: str | None) -> Cursor:
        """The cursor behind ``text``; None is the start. Raises `ValueError`."""
        if text is None:
            return cls()
        since_ns, skip, total = (int(number) for number in text.split(":"))
        return cls(since_ns, skip, total)

    @property
    def since(self) -> str:
        """As the engine's API takes it: seconds with nine decimals."""
        return f"{self.since_ns // _NS_PER_S}.{self.since_ns % _NS_PER_S:09d}"

    @classmethod
    def counted(cls, total: int) -> Cursor:
        """A position without times: all that was delivered is replayed, and skipped."""
        return cls(0, total, total)


@dataclass
class _Pending:
    """A line whose last part has not come yet."""

    timestamp_ns: int
    parts: list[bytes] = field(default_factory=list)
    size: int = 0


class LineAssembler:
    """Turns one replay's messages into the lines that were not delivered yet.

    Feed it every message the engine sends from ``cursor.since`` on; a new replay
    needs a new assembler. Not thread-safe.
    """

    def __init__(self, start: Cursor) -> None:
        self._start = start
        self._since_ns = start.since_ns
        self._skip = start.skip
        self._total = start.total
        self._newest_ns = 0
        self._replayable: list[int] = []  # heap: timestamps >= since of lines delivered
        self._pending: dict[int, _Pending] = {}
        self._timestamps_unordered = False
        self.mistimed = False
        """A message came that is older than the replay's start: go on with `cursor` and a new assembler."""

    def feed(self, stream: int, message: bytes) -> LogLine | None:
        """Take one message, "<RFC 3339 time> <bytes>", of stdout (1) or stderr (2); a line if it ends one."""
        timestamp_ns, data = split_timestamp(message)
        if timestamp_ns < self._start.since_ns:
            # Newer engines look at `since` only to find the first message. It is a late part of what was delivered,
            # or the clock was set back while nobody followed.
            self.mistimed = True
        if self.mistimed:
            return None
        if timestamp_ns < self._since_ns:
            # The clock was set back. Cursors by time would lose lines from now on; count from the start.
            self._timestamps_unordered = True
        self._newest_ns = max(self._newest_ns, timestamp_ns)
        pending = self._pending.setdefault(stream, _Pending(timestamp_ns))
        pending.parts.append(data)
        pending.size += len(data)
        if not data.endswith(b"\n") and pending.size < MAX_LINE_BYTES:
            return None
        del self._pending[stream]
        return self._complete(pending)

    def finish(self) -> list[LogLine]:
        """Call when the container has exited and all is read: returns what it printed without a final newline."""
        rest = sorted(self._pending.items(), key=lambda item: (item[1].timestamp_ns, item[0]))
        self._pending.clear()
        lines = [self._complete(pending) for _, pending in rest]
        return [line for line in lines if line is not None]

    def cursor(self) -> Cursor:
        """Resumes right behind the last line that `feed` or `finish` returned."""
        if self.mistimed:
            return Cursor.counted(self._total)
        if self._skip:
            return self._start  # still among lines of earlier replays
        if self._timestamps_unordered:
            return Cursor.counted(self._total)
        oldest_pending_ns = min((p.timestamp_ns for p in self._pending.values()), default=self._newest_ns)
        self._since_ns = max(self._since_ns, min(self._newest_ns - SLACK_NS, oldest_pending_ns))
        while self._replayable and self._replayable[0] < self._since_ns:
            heapq.heappop(self._replayable)
        return Cursor(self._since_ns, len(self._replayable), self._total)

    def _complete(self, pending: _Pending) -> LogLine | None:
        if not self._timestamps_unordered:
            heapq.heappush(self._replayable, pending.timestamp_ns)
        if self._skip:
            self._skip -= 1
            return None
        self._total += 1
        return LogLine(pending.timestamp_ns // 1_000_000, decode_line(b"".join(pending.parts)))


def split_timestamp(message: bytes) -> tuple[int, bytes]:
    """Unix nanoseconds and the rest of "2026-01-02T03:04:05.123456789Z text". Raises `ValueError`."""
    stamp, separator, data = message.partition(b" ")
    if not separator or not stamp.endswith(b"Z"):
        raise ValueError(f"the engine's log message has no UTC timestamp: {message[:80]!r}")
    seconds, _, fraction = stamp[:-1].partition(b".")
    return _unix_seconds(seconds) * _NS_PER_S + int(fraction.ljust(9, b"0")[:9] or b"0"), data


def decode_line(data: bytes) -> str:
    """Text of a line: without its end (LF or CR LF), invalid UTF-8 replaced."""
    if data.endswith(b"\n"):
        data = data[:-1].removesuffix(b"\r")
    return data.decode("utf-8", errors="replace")


@lru_cache(maxsize=16)
def _unix_seconds(stamp: bytes) -> int:
    return timegm(strptime(stamp.decode("ascii"), "%Y-%m-%dT%H:%M:%S"))
