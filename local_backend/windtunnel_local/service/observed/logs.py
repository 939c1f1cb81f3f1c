"""CloudWatch Logs' operations, without HTTP: the log streams of training jobs, transform jobs and endpoints.

Answers are dicts in the shape of AWS's responses. Timestamps are Unix milliseconds.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import Any

from windtunnel_local.service.ground import page_token
from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.errors import InvalidParameter, LogsNotFound
from windtunnel_local.service.ground.hosting import LOG_GROUPS, TRANSFORM_GROUP, stored_stream
from windtunnel_local.service.ground.ports import LogEvent, LogStream, Store
from windtunnel_local.service.observed import log_tokens
from windtunnel_local.service.observed.filter_pattern import compile_pattern
from windtunnel_local.service.observed.log_merge import Merged

GROUP = "/aws/sagemaker/TrainingJobs"
MAX_EVENTS = 10_000
MAX_STREAMS = 50
MAX_ANSWER_BYTES = 1024 * 1024
MAX_SCANNED = 20_000  # most lines that one FilterLogEvents reads: about 0.1 s
_EVENT_OVERHEAD_BYTES = 26  # CloudWatch's own figure for an event's size beyond its text


class LogsService:
    """Reads log streams. Thread-safe; no call waits for new lines."""

    def __init__(self, store: Store, config: ServiceConfig) -> None:
        """``config`` gives the account and region of ARNs."""
        self._store = store
        self._config = config

    def describe_log_groups(
        self, prefix: str | None = None, pattern: str | None = None, names: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The groups that match. The group of training jobs exists even before the first job.

        ``pattern``: a part of the name, upper and lower case alike; ``names``: exact names.

        Raises:
            InvalidParameter: both a prefix and a pattern are given.
        """
        if prefix and pattern:
            raise InvalidParameter(
                "LogGroup name prefix and LogGroup name pattern are mutually exclusive parameters."
            )
        streams = self._store.log_streams(LOG_GROUPS)
        groups = sorted({GROUP, *(stream.name.partition(":")[0] for stream in streams), *self._transforms()})
        wanted = [
            group
            for group in groups
            if group.startswith(prefix or "")
            and (pattern or "").lower() in group.lower()
            and (names is None or group in names)
        ]
        return {"logGroups": [self._described_group(group) for group in wanted]}

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
            LogsNotFound: no such group.
            InvalidParameter: the token is from another list, or a prefix is given with LastEventTime.
        """
        space = self._space(group)
        if order_by == "LastEventTime" and prefix:
            raise InvalidParameter("Cannot order by LastEventTime with a logStreamNamePrefix.")

        last = None if token is None else log_tokens.stream_position(token, order_by, descending)
        if order_by == "LastEventTime" and not space:
            streams = self._store.latest_log_streams(last, limit + 1, descending)
        elif order_by == "LastEventTime":  # endpoints and transform jobs have few streams, so all are read

            def key(stream: LogStream) -> tuple[int, str]:
                return stream.last_event_ms or 0, stream.name

            streams = sorted(self._store.log_streams(space), key=key, reverse=descending)
            if last is not None:
                streams = [s for s in streams if (key(s) < last if descending else key(s) > last)]
        else:
            streams = self._store.log_streams(space + (prefix or ""), last and last[1], limit + 1, descending)
        page = streams[:limit]
        answer: dict[str, Any] = {"logStreams": [self._describe(group, stream) for stream in page]}
        if len(streams) > len(page):
            answer["nextToken"] = page_token.encode(
                [order_by, descending, page[-1].last_event_ms or 0, page[-1].name]
            )
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

        At the end of the stream, nextForwardToken is the token that was passed in; a later call
        with it returns the lines that have come since.

        Raises:
            LogsNotFound: no such group or stream.
            InvalidParameter: the token is not valid.
        """
        stream = self._space(group) + stream
        found = self._stream(stream)
        most = min(limit or MAX_EVENTS, MAX_EVENTS)
        window = (start_ms, end_ms)
        position = None if token is None else log_tokens.event_position(token)
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
            "nextForwardToken": log_tokens.event_token(True, following),
            "nextBackwardToken": log_tokens.event_token(False, first),
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

        One call reads at most `MAX_SCANNED` lines. So a page can be short or empty and still have a nextToken.

        Raises:
            LogsNotFound: no such group, or no stream of a given name.
            InvalidParameter: both names and a prefix are given, the pattern is not supported, or the token is
                not valid.
        """
        space = self._space(group)
        chosen = self._chosen(space, streams, prefix)
        matches = compile_pattern(pattern)
        position = None if token is None else log_tokens.filter_position(token)
        past_end = None if end_ms is None else end_ms + 1
        merged = Merged(self._store, chosen, start_ms, past_end, position)
        most = min(limit or MAX_EVENTS, MAX_EVENTS)
        events: list[dict[str, Any]] = []
        answer: dict[str, Any] = {"events": events, "searchedLogStreams": []}
        size = 0
        for scanned, (name, event) in enumerate(merged):
            matching = matches(event.message)
            size += _size(event) if matching else 0
            if scanned >= MAX_SCANNED or (
                matching and (len(events) >= most or (size > MAX_ANSWER_BYTES and events))
            ):
                answer["nextToken"] = merged.before(name, event).encode()
                break
            if matching:
                events.append(
                    {"logStreamName": name[len(space) :], **_event(event), "eventId": _event_id(name, event)}
                )
        return answer

    def _chosen(
        self, space: str, names: Sequence[str] | None, prefix: str | None
    ) -> Sequence[LogStream] | None:
        """A group's streams with these names or this prefix; None: all streams of training jobs."""
        if names and prefix:
            raise InvalidParameter("Give logStreamNames or logStreamNamePrefix, not both.")
        if names:
            return [self._stream(space + name) for name in set(names)]
        return self._store.log_streams(space + (prefix or "")) if prefix or space else None

    def _transforms(self) -> Sequence[str]:
        """The log group of transform jobs, as a list that is empty until one of them has a stream."""
        has_one = self._store.log_streams(stored_stream(TRANSFORM_GROUP, ""), limit=1)
        return [TRANSFORM_GROUP] if has_one else []

    def _space(self, group: str) -> str:
        """The prefix of a group's stream names in the store; empty for training jobs.

        Raises:
            LogsNotFound: no such group.
        """
        space = stored_stream(group, "")
        if group == GROUP:
            return ""
        if not group.startswith((LOG_GROUPS, TRANSFORM_GROUP)) or not self._store.log_streams(space, limit=1):
            raise LogsNotFound("The specified log group does not exist.")
        return space

    def _stream(self, name: str) -> LogStream:
        stream = self._store.log_stream(name)
        if stream is None:
            raise LogsNotFound("The specified log stream does not exist.")
        return stream

    def _arn(self, group: str) -> str:
        return f"arn:aws:logs:{self._config.region}:{self._config.account_id}:log-group:{group}"

    def _described_group(self, group: str) -> dict[str, Any]:
        arn = self._arn(group)
        return {
            "logGroupName": group,
            "creationTime": self._store.created_ms(),
            "metricFilterCount": 0,
            "arn": f"{arn}:*",
            "logGroupArn": arn,
            "logGroupClass": "STANDARD",
        }

    def _describe(self, group: str, stream: LogStream) -> dict[str, Any]:
        name = stream.name if group == GROUP else stream.name.removeprefix(stored_stream(group, ""))
        described = {
            "logStreamName": name,
            "creationTime": stream.created_ms,
            "firstEventTimestamp": stream.first_event_ms,
            "lastEventTimestamp": stream.last_event_ms,
            "lastIngestionTime": stream.last_ingestion_ms,
            "arn": f"{self._arn(group)}:log-stream:{name}",
            "storedBytes": 0,  # as on AWS since 2019
        }
        return {member: value for member, value in described.items() if value is not None}


def _event(event: LogEvent) -> dict[str, Any]:
    return {"timestamp": event.timestamp_ms, "message": _message(event), "ingestionTime": event.ingestion_ms}


def _message(event: LogEvent) -> str:
    """The event's message. CloudWatch allows no empty one, so an empty line becomes a blank."""
    return event.message or " "


def _event_id(stream: str, event: LogEvent) -> str:
    return f"{event.timestamp_ms:020d}{event.sequence:012d}{binascii.crc32(stream.encode()):010d}"


def event_sequence(event_id: str) -> int:
    """The sequence number of an event, from the eventId that FilterLogEvents gave it."""
    return int(event_id[20:-10])


def _size(event: LogEvent) -> int:
    return len(_message(event).encode()) + _EVENT_OVERHEAD_BYTES


def _fitting(events: Sequence[LogEvent]) -> list[LogEvent]:
    """As many events from the front as fit into one answer, but at least one."""
    size = 0
    for count, event in enumerate(events):
        size += _size(event)
        if size > MAX_ANSWER_BYTES and count > 0:
            return list(events[:count])
    return list(events)
