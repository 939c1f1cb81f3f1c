"""A log of several streams, one for each container. Each stream is read on from where the last call ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from windtunnel.session.training_service import LogLine

Read = Callable[[str, str | None], tuple[Sequence[LogLine], str | None]]


class LogStreams:
    """Gives the new lines of all streams.

    Args:
        streams: returns the names of the streams there are now.
        read: returns the lines of a stream after a token, and the next token.
        since: leave out lines from before this time.
    """

    def __init__(self, streams: Callable[[], list[str]], read: Read, since: datetime | None = None) -> None:
        self._streams = streams
        self._read = read
        self._since_ms = 0 if since is None else int(since.timestamp() * 1000)
        self._tokens: dict[str, str | None] = {}

    def news(self) -> Iterator[str]:
        """The lines that have come since the last call; with several streams each has its stream's name before it."""
        for stream in self._streams():
            self._tokens.setdefault(stream, None)
        for stream in sorted(self._tokens):
            prefix = f"[{stream}] " if len(self._tokens) > 1 else ""
            while True:
                before = self._tokens[stream]
                lines, self._tokens[stream] = self._read(stream, before)
                for line in lines:
                    if line.timestamp_ms >= self._since_ms:
                        yield prefix + line.text.rstrip("\n")
                if self._tokens[stream] == before:  # the end; an empty page may have a successor
                    break
