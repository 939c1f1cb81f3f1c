"""Merges the events of several log streams in order of time, and reads only as many as are asked for."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from windtunnel_local.service.ground.ports import LogEvent, LogStream, Store
from windtunnel_local.service.observed.log_tokens import FilterPosition

FOREVER_MS = 1 << 61
BEGINNING: tuple[int, str] = (-FOREVER_MS, "")
_PAGE = 500
_STREAMS = 50


class Merged:
    """Iterates over events by time, then by stream name. A stream is opened when its first event is due."""

    def __init__(
        self,
        store: Store,
        streams: Iterable[LogStream] | None,
        start_ms: int | None,
        end_ms: int | None,
        position: FilterPosition | None,
    ) -> None:
        """``streams``: None for all of training jobs. Yields events with start_ms <= timestamp < end_ms."""
        self._store = store
        self._start_ms = start_ms
        self._end_ms = end_ms
        self._begun = position.begun if position else BEGINNING
        self._within: dict[str, int] = dict(position.within) if position else {}
        self._heap: list[tuple[int, str, LogEvent]] = []
        self._rest: dict[str, Iterator[LogEvent]] = {}
        if streams is None:
            if position is None and start_ms is not None:
                self._within = {stream.name: 0 for stream in store.log_streams_across(start_ms)}
                self._begun = (start_ms - 1, "\U0010ffff")
            self._pending = self._all_pending()
        else:
            self._pending = iter(self._chosen(streams))
        self._next: LogStream | None = next(self._pending, None)
        for name, sequence in list(self._within.items()):
            self._open(name, sequence)

    def before(self, stream: str, event: LogEvent) -> FilterPosition:
        """The position just before ``event``, which must be the last one that was yielded."""
        return FilterPosition(self._begun, {**self._within, stream: event.sequence})

    def __iter__(self) -> Iterator[tuple[str, LogEvent]]:
        """Pairs of stream name and event."""
        while True:
            while self._next is not None and (not self._heap or _first(self._next) <= self._heap[0][0]):
                self._begun = (_first(self._next), self._next.name)
                self._open(self._next.name, 0)
                self._next = next(self._pending, None)
            if not self._heap:
                return
            _, name, event = heapq.heappop(self._heap)
            self._within[name] = event.sequence + 1
            self._push(name)
            yield name, event

    def _open(self, name: str, first: int) -> None:
        self._rest[name] = self._events(name, first)
        self._within[name] = first
        self._push(name)

    def _push(self, name: str) -> None:
        event = next(self._rest[name], None)
        if event is None:
            del self._rest[name]
            del self._within[name]
        else:
            heapq.heappush(self._heap, (event.timestamp_ms, name, event))

    def _events(self, name: str, first: int) -> Iterator[LogEvent]:
        while page := self._store.read_log(name, first, _PAGE, self._start_ms, self._end_ms):
            yield from page
            first = page[-1].sequence + 1

    def _chosen(self, streams: Iterable[LogStream]) -> list[LogStream]:
        """The streams that are not opened yet and may have events between start and end."""
        start_ms = -FOREVER_MS if self._start_ms is None else self._start_ms
        end_ms = FOREVER_MS if self._end_ms is None else self._end_ms
        found = [
            stream
            for stream in streams
            if stream.first_event_ms is not None
            and (stream.first_event_ms, stream.name) > self._begun
            and stream.first_event_ms < end_ms
            and (stream.last_event_ms or 0) >= start_ms
        ]
        return sorted(found, key=lambda stream: (_first(stream), stream.name))

    def _all_pending(self) -> Iterator[LogStream]:
        after = self._begun
        end_ms = FOREVER_MS if self._end_ms is None else self._end_ms
        while page := self._store.log_streams_begun(after, end_ms, _STREAMS):
            yield from page
            after = (_first(page[-1]), page[-1].name)


def _first(stream: LogStream) -> int:
    return stream.first_event_ms or 0
