"""The logs' side of CloudWatch's API, free of HTTP: the streams of training jobs.

Answers are dicts in the shape of AWS's responses. Timestamps are Unix milliseconds.
"""

from __future__ import annotations

import base64
import binascii
import heapq
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from windtunnel_local.service.config import ServiceConfig
from windtunnel_local.service.errors import InvalidParameter, LogsNotFound
from windtunnel_local.service.observed.filter_pattern import compile_pattern
from windtunnel_local.service.ports import LogEvent, LogStream, Store

GROUP = "/aws/sagemaker/TrainingJobs"
MAX_EVENTS = 10_000
MAX_STREAMS = 50
MAX_ANSWER_BYTES = 1024 * 1024
_EVENT_OVERHEAD_BYTES = 26  # CloudWatch's own figure for an event's size beyond its text
_PAGE = 500
_TOKEN = re.compile(r"(?P<direction>[fb])/(?P<sequence>\d{1,56})")


class LogsService:
    """Reads log streams. Safe from several threads; no call waits for new lines."""

    def __init__(self, store: Store, config: ServiceConfig) -> None:
        """``config`` gives the account and region of ARNs."""
        self._store = store
        self._config = config

    def describe_log_streams(
        self,
        group: str,
        prefix: str | None = None,
        order_by: str = "LogStreamName",
        descending: bool = False,
        limit: int = MAX_STREAMS,
        token: str | None = None,
    ) -> dict[str, Any]:
        """One page of streams, and nextToken if there are more.

        Raises:
            LogsNotFound: another group than that of training jobs.
            InvalidParameter: a token of another list, or a prefix with LastEventTime.
        """
        _require_group(group)
        if order_by == "LastEventTime" and prefix:
            raise InvalidParameter("Cannot order by LastEventTime with a logStreamNamePrefix.")

        def key(stream: LogStream) -> tuple[int, str]:
            return (stream.last_event_ms or 0 if order_by == "LastEventTime" else 0, stream.name)

        streams = sorted(self._store.log_streams(prefix or ""), key=key, reverse=descending)
        if token is not None:
            last = _stream_position(token, order_by, descending)
            streams = [s for s in streams if (key(s) < last if descending else key(s) > last)]
        page = streams[:limit]
        answer: dict[str, Any] = {"logStreams": [self._describe(stream) for stream in page]}
        if len(streams) > len(page):
            answer["nextToken"] = _encode([order_by, descending, *key(page[-1])])
        return answer

    def get_log_events(
        self,
        group: str,
        stream: str,
        start_ms: int | None = None,
        end_ms: int | None = None,
        from_head: bool = False,
        token: str | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """Events of one stream, with start_ms <= timestamp < end_ms.

        At the end of the stream the forward token is the one that was passed in: reading on
        with it gives the lines that have come since.

        Raises:
            LogsNotFound: no such group or stream.
            InvalidParameter: not one of our tokens.
        """
        _require_group(group)
        found = self._stream(stream)
        most = min(limit or MAX_EVENTS, MAX_EVENTS)
        window = (start_ms, end_ms)
        position = None if token is None else _position(token)
        if position is not None:
            forward, sequence = position
        else:
            forward, sequence = from_head, 0 if from_head else found.events
        if forward:
            events = _fitting(self._store.read_log(stream, sequence, most, *window))
        else:
            latest = self._store.read_log_before(stream, sequence, most, *window)
            events = _fitting(latest[::-1])[::-1]
        first = events[0].sequence if events else sequence
        following = events[-1].sequence + 1 if events else sequence
        return {
            "events": [_event(event) for event in events],
            "nextForwardToken": f"f/{following:056d}",
            "nextBackwardToken": f"b/{first:056d}",
        }

    def filter_log_events(
        self,
        group: str,
        streams: Sequence[str] | None = None,
        prefix: str | None = None,
        start_ms: int | None = None,
        end_ms: int | None = None,
        pattern: str | None = None,
        token: str | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """Matching events of several streams, interleaved by time; ``end_ms`` is included, as on AWS.

        Raises:
            LogsNotFound: no such group, or a named stream is not there.
            InvalidParameter: names and a prefix together, a pattern that is not supported, or not
                one of our tokens.
        """
        _require_group(group)
        if streams and prefix:
            raise InvalidParameter("Give logStreamNames or logStreamNamePrefix, not both.")
        matches = compile_pattern(pattern)
        names = sorted(set(streams)) if streams else [s.name for s in self._store.log_streams(prefix or "")]
        for name in streams or ():
            self._stream(name)
        positions = {} if token is None else _positions(token)
        past_end = None if end_ms is None else end_ms + 1
        sources = [self._events(name, positions.get(name, 0), start_ms, past_end) for name in names]
        most = min(limit or MAX_EVENTS, MAX_EVENTS)
        answer: dict[str, Any] = {"events": []}
        size = 0
        for _, name, event in heapq.merge(*sources, key=lambda item: (item[0], item[1])):
            if matches(event.message):
                size += _size(event)
                if len(answer["events"]) >= most or (size > MAX_ANSWER_BYTES and answer["events"]):
                    answer["nextToken"] = _encode(positions)
                    break
                answer["events"].append(
                    {"logStreamName": name, **_event(event), "eventId": _event_id(name, event)}
                )
            positions[name] = event.sequence + 1
        answer["searchedLogStreams"] = []
        return answer

    def _events(
        self, stream: str, first: int, start_ms: int | None, end_ms: int | None
    ) -> Iterator[tuple[int, str, LogEvent]]:
        """One stream page by page, with the time by which it is merged."""
        latest = 0
        while page := self._store.read_log(stream, first, _PAGE, start_ms, end_ms):
            for event in page:
                # Lines keep the order of their stream even where its clock stepped back.
                latest = max(latest, event.timestamp_ms)
                yield latest, stream, event
            first = page[-1].sequence + 1

    def _stream(self, name: str) -> LogStream:
        for stream in self._store.log_streams(name):
            if stream.name == name:
                return stream
        raise LogsNotFound("The specified log stream does not exist.")

    def _describe(self, stream: LogStream) -> dict[str, Any]:
        described = {
            "logStreamName": stream.name,
            "creationTime": stream.created_ms,
            "firstEventTimestamp": stream.first_event_ms,
            "lastEventTimestamp": stream.last_event_ms,
            "lastIngestionTime": stream.last_ingestion_ms,
            "arn": f"arn:aws:logs:{self._config.region}:{self._config.account_id}:log-group:{GROUP}"
            f":log-stream:{stream.name}",
            "storedBytes": 0,  # as on AWS since 2019
        }
        return {member: value for member, value in described.items() if value is not None}


def _require_group(group: str) -> None:
    if group != GROUP:
        raise LogsNotFound("The specified log group does not exist.")


def _event(event: LogEvent) -> dict[str, Any]:
    return {"timestamp": event.timestamp_ms, "message": event.message, "ingestionTime": event.ingestion_ms}


def _event_id(stream: str, event: LogEvent) -> str:
    return f"{event.timestamp_ms:020d}{event.sequence:012d}{binascii.crc32(stream.encode()):010d}"


def _size(event: LogEvent) -> int:
    return len(event.message.encode()) + _EVENT_OVERHEAD_BYTES


def _fitting(events: Sequence[LogEvent]) -> list[LogEvent]:
    """As many from the front as one answer may hold; at least one."""
    size = 0
    for count, event in enumerate(events):
        size += _size(event)
        if size > MAX_ANSWER_BYTES and count > 0:
            return list(events[:count])
    return list(events)


# --- tokens -------------------------------------------------------------------


def _position(token: str) -> tuple[bool, int]:
    """Whether a token reads forward, and the sequence at which it stands."""
    found = _TOKEN.fullmatch(token)
    if found is None or int(found["sequence"]) >= 2**62:
        raise _bad_token()
    return found["direction"] == "f", int(found["sequence"])


def _positions(token: str) -> dict[str, int]:
    data = _decode(token)
    if not isinstance(data, dict) or not all(isinstance(p, int) and 0 <= p < 2**62 for p in data.values()):
        raise _bad_token()
    return data


def _stream_position(token: str, order_by: str, descending: bool) -> tuple[int, str]:
    match _decode(token):
        case [given_order, given_descending, int() as value, str() as name] if (
            given_order == order_by and given_descending == descending
        ):
            return value, name
    raise _bad_token()


def _encode(data: Sequence[Any] | Mapping[str, int]) -> str:
    return base64.urlsafe_b64encode(json.dumps(data, separators=(",", ":")).encode()).decode()


def _decode(token: str) -> Any:
    try:
        return json.loads(base64.b64decode(token.encode(), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        raise _bad_token() from None


def _bad_token() -> InvalidParameter:
    return InvalidParameter("The specified nextToken is invalid.")
