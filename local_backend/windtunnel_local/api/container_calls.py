"""An HTTP/1.1 client for requests to containers: it keeps connections alive, and runs on one event loop.

No library is used, because one took a third of the server's time for each request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

import httptools

from windtunnel_local.service.hosting.container_answer import KEPT_S, acknowledge_at_once

Address = tuple[str, int]

_READ_AHEAD_BYTES = 1 << 20
"""How much of an answer is received before someone reads it; then the container has to wait."""
_MAX_HEAD_BYTES = 64 << 10


class NeverSentError(ConnectionError):
    """The request did not reach the container, so it can be sent again."""


class ContainerCalls:
    """A pool of connections to containers."""

    def __init__(self) -> None:
        self._idle: dict[Address, list[_Connection]] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Close all idle connections. Idempotent."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connections in self._idle.values():
            for connection in connections:
                connection.close()
        self._idle.clear()

    async def post(
        self, address: Address, path: str, headers: Mapping[str, str], body: bytes, timeout_s: float
    ) -> Answer:
        """Send a POST request; returns when the answer's status and headers are there. Then call `Answer.close`.

        Raises:
            NeverSentError: nothing listens at the address.
            OSError: the connection broke off, or the answer is not HTTP.
            asyncio.TimeoutError: the answer was not read to its end within ``timeout_s`` seconds.
        """
        connection = self._kept(address) or await self._connected(address, timeout_s)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        host, port = address
        head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
        try:
            return await connection.ask(head.encode("latin-1"), body, timeout_s)
        except BaseException:
            connection.close()
            raise

    def _kept(self, address: Address) -> _Connection | None:
        idle = self._idle.get(address, [])
        while idle:
            connection = idle.pop()
            if connection.usable and not connection.is_old:
                return connection
            connection.close()
        return None

    async def _connected(self, address: Address, timeout_s: float) -> _Connection:
        loop = asyncio.get_running_loop()
        connecting = loop.create_connection(
            lambda: _Connection(lambda one: self._keep(address, one)), *address
        )
        try:
            _, connection = await asyncio.wait_for(connecting, timeout_s)
        except OSError as error:
            raise NeverSentError(str(error)) from error
        return connection

    def _keep(self, address: Address, connection: _Connection) -> None:
        self._idle.setdefault(address, []).append(connection)
        if self._sweeper is None:
            self._sweep_later()

    def _sweep_later(self) -> None:
        self._sweeper = asyncio.get_running_loop().call_later(KEPT_S, self._sweep)

    def _sweep(self) -> None:
        """Close old idle connections: a server that handles one connection at a time accepts no other meanwhile."""
        for address, connections in list(self._idle.items()):
            for connection in [c for c in connections if c.is_old or not c.usable]:
                connections.remove(connection)
                connection.close()
            if not connections:
                del self._idle[address]
        self._sweeper = None
        if self._idle:
            self._sweep_later()


class Answer:
    """A container's answer, whose body is read piece by piece. ``headers``: by lower-case name."""

    def __init__(self, status: int, headers: Mapping[str, str], connection: _Connection) -> None:
        self.status = status
        self.headers = headers
        self._connection = connection

    @property
    def ok(self) -> bool:
        """Whether the status is no error (below 400)."""
        return self.status < 400

    async def next_part(self) -> bytes:
        """The next bytes of the body, as soon as some are there; empty at its end. Raises as `ContainerCalls.post`."""
        return await self._connection.next_part()

    def close(self) -> None:
        """Release the connection, to be used again if the answer was read to its end. Idempotent."""
        self._connection.release()


class _Connection(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self, keep: Callable[[_Connection], None]) -> None:
        self._idle_since = 0.0
        self._keep = keep
        self._loop = asyncio.get_running_loop()
        self._transport: Any = None
        self._parser: Any = None
        """None: no request is under way."""
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._error: Exception | None = None
        self._reset()

    def _reset(self) -> None:
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._status: int | None = None
        self._parts: list[bytes] = []
        self._held = 0
        self._complete = False
        self._stays = False

    # --- for the pool and `Answer` ---

    @property
    def usable(self) -> bool:
        """Whether a request can be sent."""
        return self._error is None and not self._transport.is_closing()

    @property
    def is_old(self) -> bool:
        """Whether the connection was idle for so long that the container may be about to close it."""
        return time.monotonic() - self._idle_since >= KEPT_S

    async def ask(self, head: bytes, body: bytes, timeout_s: float) -> Answer:
        """Write the request and wait for the answer's head."""
        if not self.usable:  # the engine's proxy accepts for a container that has just ended, then closes
            raise NeverSentError("it closed the connection before it was asked")
        self._reset()
        self._parser = httptools.HttpResponseParser(self)
        self._timer = self._loop.call_later(timeout_s, self._fail, asyncio.TimeoutError())
        self._transport.writelines((head, body))
        acknowledge_at_once(self._transport.get_extra_info("socket"))
        while self._status is None:
            await self._wait()
        return Answer(self._status, self._headers, self)

    async def next_part(self) -> bytes:
        """The next bytes of the body, as soon as some are there; empty at its end."""
        while not self._parts:
            if self._complete:
                return b""
            await self._wait()
        part = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        if self._held > _READ_AHEAD_BYTES and not self._complete:
            self._transport.resume_reading()
        self._held = 0
        return part

    def release(self) -> None:
        """End the request: put the connection back into the pool if it can be used again, else close it."""
        if self._parser is None:
            return
        # A container may have answered without reading the whole request.
        is_sent = self.usable and not self._transport.get_write_buffer_size()
        is_good = self._complete and self._stays and is_sent
        self._end()
        if is_good:
            self._transport.resume_reading()  # paused if the read-ahead was full when the answer ended
            self._idle_since = time.monotonic()
            self._keep(self)
        else:
            self.close()

    def close(self) -> None:
        """Close the connection at once. Idempotent."""
        self._end()
        self._transport.abort()

    def _end(self) -> None:
        self._parser = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if self._error is not None and not self._complete:
            raise self._error

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._wake()

    # --- called by the event loop and the parser ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Parse the bytes of an answer. Without a request under way they end the connection."""
        if self._parser is None:
            self._transport.abort()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(ConnectionError(f"what it sent is no HTTP: {error}"))
            return
        if self._status is None:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD_BYTES:
                self._fail(ConnectionError(f"the head of its answer is longer than {_MAX_HEAD_BYTES} bytes"))

    def connection_lost(self, error: Exception | None) -> None:
        """The connection was closed: that ends an answer without a length, and breaks off any other."""
        until_the_end = (
            self._status is not None and not {"content-length", "transfer-encoding"} & self._headers.keys()
        )
        if error is None and until_the_end:
            self._complete = True
        self._fail(error or ConnectionError("it closed the connection"))

    def on_message_begin(self) -> None:
        """If a second answer to the same request begins, do not use the connection again."""
        if self._complete:
            self._stays = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header of the answer's head; trailers are ignored."""
        if self._status is None:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """The head is complete. Interim answers (1xx) are ignored."""
        if self._complete:
            return
        status = self._parser.get_status_code()
        if status < 200:
            self._headers.clear()
            return
        self._status = status
        self._wake()

    def on_body(self, part: bytes) -> None:
        """Keep the bytes until they are read; above `_READ_AHEAD_BYTES` the container has to wait."""
        if self._complete:
            return
        self._parts.append(part)
        before, self._held = self._held, self._held + len(part)
        if before <= _READ_AHEAD_BYTES < self._held:
            self._transport.pause_reading()
        self._wake()

    def on_message_complete(self) -> None:
        if self._status is not None and not self._complete:
            self._complete = True
            self._stays = self._parser.should_keep_alive()  # the parser knows it only now
            self._wake()
