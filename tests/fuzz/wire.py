"""HTTP as bytes: what a fuzzed request looks like on the wire, and a connection that is kept alive."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType

TIMEOUT_S = 15.0
Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Message:
    """One request. ``head``: the bytes up to the body, when they are not made from the rest."""

    method: str
    target: str
    headers: Headers
    body: bytes = b""
    head: bytes | None = None
    half_close: bool = False
    """Whether the client says that it will send no more: for bodies that are shorter than announced."""

    def raw(self) -> bytes:
        """The bytes on the wire."""
        if self.head is not None:
            return self.head + self.body
        lines = [
            f"{self.method} {self.target} HTTP/1.1",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape") + self.body

    def with_headers(self, **values: str | None) -> Message:
        """The message with headers set, or removed by None; underscores stand for hyphens."""
        wanted = {name.replace("_", "-").lower(): value for name, value in values.items()}
        kept = [(n, v) for n, v in self.headers if n.lower() not in wanted]
        return replace(self, headers=[*kept, *((n, v) for n, v in wanted.items() if v is not None)])


@dataclass(frozen=True)
class Answer:
    """What came back. ``status`` 0: the connection was closed without an answer."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Connection:
    """A keep-alive connection to loopback, opened when it is needed."""

    def __init__(self, port: int, timeout_s: float = TIMEOUT_S) -> None:
        """Connect to nothing yet."""
        self._port = port
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it. Idempotent."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def exchange(self, message: Message) -> Answer:
        """Send and wait for the answer.

        Raises:
            TimeoutError: there was none in time: the server hangs.
        """
        reused = self._socket is not None
        try:
            return self._exchange(message)
        except (ConnectionError, http.client.HTTPException):
            self.close()
            if reused:  # closed between two requests, as HTTP allows
                return self.exchange(message)
            return Answer(0)
        except TimeoutError:
            self.close()
            raise

    def _exchange(self, message: Message) -> Answer:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), self._timeout_s)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._socket.sendall(message.raw())
            if message.half_close:
                self._socket.shutdown(socket.SHUT_WR)
        except TimeoutError:
            raise
        except OSError:
            pass  # refused before all of it was sent: the answer may be there nevertheless
        response = http.client.HTTPResponse(self._socket, method=message.method)
        try:
            response.begin()
            body = response.read()
            answer = Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, body)
            if response.will_close or message.half_close:
                self.close()
            return answer
        finally:
            response.close()
