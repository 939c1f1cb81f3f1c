"""A log of several streams, one for each container. Each stream is read on from where the last call ended."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime

from windtunnel.session.training_service import LogLine

Read = Callable[[str, str | None], tuple[Sequence[LogLine], str | None]]


class LogStreams:
    """Gives the new lines of all streams, each line once. Who stops amid a page does not get the rest of it.

    Args:
        streams: returns the names of the streams to read from now on, besides those that it has named before.
        read: returns the lines of a stream after a token, and the next token.
        since: leave out lines from before this time.
    """

    def __init__(
        self, streams: Callable[[], Iterable[str]], read: Read, since: datetime | None = None
    ) -> None:
        self._streams = streams
        self._read = read
        self._since_ms = 0 if since is None else int(since.timestamp() * 1000)
        self._tokens: dict[str, str | None] = {}

    def lines(self) -> Iterator[tuple[str, str]]:
        """The lines that have come since the last call, each with its stream's name; does not wait for more."""
        for stream in self._streams():
            self._tokens.setdefault(stream, None)
        for stream in sorted(self._tokens):
            while True:
                before = self._tokens[stream]
                # Store the token before the lines are given out: a caller that stops in the middle of a page would
                # otherwise get its first lines again.
                lines, self._tokens[stream] = self._read(stream, before)
                for line in lines:
                    if line.timestamp_ms >= self._since_ms:
                        yield stream, line.text.rstrip("\n")
                if self._tokens[stream] == before:  # the end; an empty page may have a successor
                    break

    def news(self) -> Iterator[str]:
        """As `lines`; with several streams each line has its stream's name in brackets before it."""
        for stream, line in self.lines():
            yield f"[{stream}] {line}" if len(self._tokens) > 1 else line


def last_of(count: int | None, lines: Iterator[str]) -> Iterable[str]:
    """The last ``count`` lines; None: all lines, as they come."""
    return lines if count is None else deque(lines, maxlen=min(count, sys.maxsize))
