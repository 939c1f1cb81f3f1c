"""The log of a job as pages of lines, read through the service behind CloudWatch Logs.

Lines of several streams are merged by time. A page takes an equal share of lines from each stream. If a stream has
more than its share, the page ends at the time of its last line read: the next page begins with the stream's rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from windtunnel_local.service.ground.errors import LogsNotFound
from windtunnel_local.service.observed import log_tokens
from windtunnel_local.service.observed.logs import GROUP, MAX_EVENTS, MAX_STREAMS, LogsService, event_sequence
from windtunnel_local.ui.job.log_position import Position, host_of
from windtunnel_local.ui.job.log_text import shown

LEAST_SHARE = 20
_MOST_STREAMS = 400
"""The most streams that are read: one for each host and attempt."""


@dataclass(frozen=True)
class Line:
    """A line as it is shown. ``length``: if ``text`` is cut, the characters of the whole line; else 0."""

    stream: str
    sequence: int
    time_ms: int
    text: str
    length: int

    @property
    def order(self) -> tuple[int, str, int]:
        """The sort key: time, then stream, so that the order does not depend on the size of pages."""
        return self.time_ms, self.stream, self.sequence

    @property
    def clock(self) -> str:
        """The line's time of day, in UTC."""
        return f"{datetime.fromtimestamp(self.time_ms / 1000, timezone.utc):%H:%M:%S}"

    @property
    def host(self) -> str:
        """The host that wrote the line."""
        return host_of(self.stream)


@dataclass(frozen=True)
class LogPage:
    """Lines, and the positions before and after them. ``more``: more lines follow in the reading direction."""

    lines: Sequence[Line] = ()
    begin: Position = field(default_factory=dict)
    end: Position = field(default_factory=dict)
    more: bool = False


@dataclass(frozen=True)
class Found:
    """The result of a search. ``token``: for the next search; None if all lines have been searched."""

    lines: Sequence[Line]
    token: str | None


@dataclass(frozen=True)
class _Share:
    """The lines of one stream, from sequence number ``first`` on. ``limited``: the stream has more."""

    stream: str
    first: int
    lines: Sequence[Line]
    limited: bool


class JobLog:
    """Reads one job's log. No call waits for new lines. Thread-safe."""

    def __init__(self, logs: LogsService, job: str) -> None:
        """A job without a log is read as one without lines."""
        self._logs = logs
        self._job = job

    def streams(self, host: str | None = None) -> dict[str, int]:
        """The time of the last write (Unix ms) by stream, of one host or all. Names are without the job's."""
        found: dict[str, int] = {}
        token = None
        while len(found) < _MOST_STREAMS:
            answer = self._logs.describe_log_streams(
                GROUP, prefix=f"{self._job}/", limit=MAX_STREAMS, token=token
            )
            for stream in answer["logStreams"]:
                found[self._short(stream["logStreamName"])] = stream.get("lastIngestionTime", 0)
            token = answer.get("nextToken")
            if token is None:
                break
        return {name: last for name, last in found.items() if host in (None, host_of(name))}

    def after(self, position: Position, most: int, streams: Sequence[str]) -> LogPage:
        """Up to ``most`` lines after a position, in these streams."""
        shares = [self._read(name, True, position.get(name, 0), most, len(streams)) for name in streams]
        ends = [share.lines[-1].order for share in shares if share.limited]
        lines = _by_time(line for share in shares for line in share.lines)
        taken = [line for line in lines if not ends or line.order <= min(ends)][:most]
        end = {share.stream: share.first for share in shares}
        for line in taken:
            end[line.stream] = line.sequence + 1
        begin = {share.stream: share.first for share in shares}
        return LogPage(taken, begin, end, more=bool(ends) or len(taken) < len(lines))

    def before(self, position: Position | None, most: int, streams: Sequence[str]) -> LogPage:
        """Up to ``most`` lines before a position (None: the end), in these streams."""
        shares = [
            self._read(name, False, None if position is None else position.get(name, 0), most, len(streams))
            for name in streams
        ]
        begins = [share.lines[0].order for share in shares if share.limited]
        lines = _by_time(line for share in shares for line in share.lines)
        taken = [line for line in lines if not begins or line.order >= max(begins)][-most:]
        ends = {share.stream: share.first + len(share.lines) for share in shares}
        begin = dict(ends)
        for line in reversed(taken):
            begin[line.stream] = line.sequence
        return LogPage(taken, begin, ends, more=any(begin.values()))

    def place(self, stream: str, sequence: int, streams: Sequence[str]) -> Position:
        """The position of a line. Lines of other streams with the same time come after it."""
        line = self._event(stream, sequence)
        found = {stream: sequence}
        for other in streams:
            if other != stream:
                found[other] = self._first_at(other, 0 if line is None else line["timestamp"])
        return found

    def whole(self, stream: str, sequence: int) -> str | None:
        """A line as it was printed; None if it does not exist."""
        event = self._event(stream, sequence)
        return None if event is None else str(event["message"])

    def all_of(self, stream: str) -> Iterator[str]:
        """All lines of a stream as they were printed, up to the present end; each piece has many lines."""
        sequence, end = 0, self._end(stream)
        while sequence < end:
            answer = self._events(stream, True, sequence, min(MAX_EVENTS, end - sequence))
            yield "".join(f"{event['message']}\n" for event in answer["events"])
            sequence = log_tokens.event_position(answer["nextForwardToken"])[1]

    def search(self, pattern: str, most: int, token: str | None = None, host: str | None = None) -> Found:
        """The next lines that match, from the log's start or from ``token`` on; ``pattern``: CloudWatch's.

        One call searches a limited number of lines: it may find few or none, though more lines match further on.

        Raises:
            InvalidParameter: the pattern or the token is not valid.
        """
        prefix = f"{self._job}/" if host is None else f"{self._job}/{host}-"
        answer = self._logs.filter_log_events(GROUP, prefix=prefix, pattern=pattern, token=token, limit=most)
        lines = [
            _line(self._short(event["logStreamName"]), event_sequence(event["eventId"]), event)
            for event in answer["events"]
        ]
        return Found(lines, answer.get("nextToken"))

    def _read(self, stream: str, forward: bool, sequence: int | None, most: int, count: int) -> _Share:
        wanted = max(LEAST_SHARE, -(-most // max(1, count)))
        answer = self._events(stream, forward, sequence, wanted)
        events = answer["events"]
        first = log_tokens.event_position(answer["nextBackwardToken"])[1]
        limited = first > 0
        if forward and events:
            # Fewer than wanted may be returned because of their size.
            behind = first + len(events)
            limited = len(events) >= wanted or bool(self._events(stream, True, behind, 1)["events"])
        lines = [_line(stream, first + place, event) for place, event in enumerate(events)]
        return _Share(stream, first, lines, limited and bool(events))

    def _event(self, stream: str, sequence: int) -> dict[str, Any] | None:
        try:
            events = self._events(stream, True, sequence, 1)["events"]
        except LogsNotFound:
            return None
        return events[0] if events else None

    def _events(self, stream: str, forward: bool, sequence: int | None, most: int) -> dict[str, Any]:
        token = None if sequence is None else log_tokens.event_token(forward, sequence)
        return self._logs.get_log_events(
            GROUP, f"{self._job}/{stream}", from_head=forward, token=token, limit=most
        )

    def _first_at(self, stream: str, moment_ms: int) -> int:
        """The sequence number of a stream's first line at or after a time; after its last line if there is none."""
        answer = self._logs.get_log_events(
            GROUP, f"{self._job}/{stream}", start_ms=moment_ms, from_head=True, limit=1
        )
        if not answer["events"]:
            return self._end(stream)
        return log_tokens.event_position(answer["nextBackwardToken"])[1]

    def _end(self, stream: str) -> int:
        """The sequence number after the stream's last line."""
        return log_tokens.event_position(self._events(stream, False, None, 1)["nextForwardToken"])[1]

    def _short(self, stream: str) -> str:
        return stream.removeprefix(f"{self._job}/")


def phrase(text: str) -> str:
    """CloudWatch's pattern for lines that contain exactly this text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


ERRORS = '?Traceback ?Error ?ERROR ?Exception ?"error: " ?FATAL ?Fatal'
"""CloudWatch's pattern for a line about an error."""


def _line(stream: str, sequence: int, event: dict[str, Any]) -> Line:
    return Line(stream, sequence, event["timestamp"], *shown(event["message"]))


def _by_time(lines: Any) -> list[Line]:
    return sorted(lines, key=lambda line: line.order)
