"""HTTP connections with deadlines: slow, silent or too many clients cannot block the server.

uvicorn's protocol waits for ever for the rest of a request, and holds as many connections as there
are file descriptors. Here a connection has a deadline in every state, and when there are too many,
an idle one is closed.

    nothing sent yet, or between two requests   IDLE_S
    a request's head, incomplete                HEAD_S, from its first byte to its last
    a body that the server is ready to read     STALL_S without a byte; CROWDED_S while other requests wait
    an answer that the client does not read     STALL_S without a byte
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import resource
from collections.abc import Iterable
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from windtunnel_local.api.dispatch import MAX_HEAD_BYTES

log = logging.getLogger("windtunnel.server")

IDLE_S = 75.0  # longer than clients wait between two polls, so that their connections stay open
HEAD_S = 20.0
STALL_S = 60.0
CROWDED_S = 10.0  # AWS's clients retry after a RequestTimeout
MAX_CONNECTIONS = 1000
_RESERVED_DESCRIPTORS = 256  # for files, SQLite and engines' sockets
_numbers = itertools.count()
_ERROR = b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>%s</Code><Message>%s</Message></Error>'


class BoundedProtocol(HttpToolsProtocol):
    """One connection with deadlines. To enforce them, call `end_overdue` about once a second."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection; if there are too many, close the one that has been idle for the longest."""
        super().connection_made(transport)
        self._heard = self.loop.time()
        self._number = next(_numbers)
        self._head_since: float | None = None
        self._stuck_since: float | None = None
        self._in_head = False
        self._head_bytes = 0
        if len(self.connections) > most_connections():
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Remember when the client last sent data, let uvicorn parse it, and refuse a head that is too long."""
        self._heard = self.loop.time()
        if not self._busy and self._head_since is None:
            self._head_since = self._heard
        was_in_head = self._in_head
        super().data_received(data)
        self._head_bytes = self._head_bytes + len(data) if was_in_head and self._in_head else 0
        if self._head_bytes > MAX_HEAD_BYTES:
            self.send_400_response("")
        elif self._busy:
            self._head_since = None

    def on_message_begin(self) -> None:
        """A request's head (its line and headers) begins."""
        super().on_message_begin()
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header of the head. Headers after the body (trailers) are dropped: no signature covers them."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is complete: check it, then start the application.

        A transfer coding other than chunked is refused, since programs may disagree where the body ends. A target that
        is not a path is refused, since they may disagree what it names.
        """
        self._in_head = False
        if any(name == b"transfer-encoding" and value.lower() != b"chunked" for name, value in self.headers):
            raise httptools.HttpParserError("transfer-encoding")
        if not self.url.startswith(b"/") or b"#" in self.url:
            raise httptools.HttpParserError("the target is no path")
        super().on_headers_complete()
        # Exactly as they were sent, because the signature covers them so.
        self.scope["raw_path"], _, self.scope["query_string"] = self.url.partition(b"?")

    def _unsupported_upgrade_warning(self) -> None:
        """Ignore a request to switch protocols (Upgrade). Close after the answer: what follows may not be HTTP."""
        self.cycle.keep_alive = False

    def eof_received(self) -> bool:  # type: ignore[override]
        """The client sends no more: answer its request, or refuse it if its body is incomplete.

        A client that has left looks the same. An answer without a length, as a stream of events, may never end by
        itself: its connection closes here, or a page that the user has closed would count as open.

        Returns whether the connection stays open for the answer, as asyncio defines it.
        """
        if not self._busy:
            return False
        if self.cycle.more_body and not self.cycle.response_started:
            self._refuse(
                b"IncompleteBody", b"You did not provide the number of bytes specified by the headers."
            )
            return False
        self.cycle.keep_alive = False
        return not self.cycle.chunked_encoding

    def pause_writing(self) -> None:
        """The client does not read the answer: remember since when."""
        super().pause_writing()
        self._stuck_since = self.loop.time()

    def resume_writing(self) -> None:
        """The client reads the answer again."""
        super().resume_writing()
        self._stuck_since = None

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  uvicorn's signature
        """Answer invalid HTTP with S3's error, and close. The answer does not repeat what was received."""
        self._refuse(b"BadRequest", b"An error occurred when parsing the HTTP request.")

    def end_if_overdue(self, now: float, body_s: float) -> None:
        """Close the connection if its deadline has passed. ``body_s``: how many seconds a body may stall."""
        if self.transport.is_closing():
            return
        if self._stuck_since is not None:
            if now - self._stuck_since > STALL_S:
                self.transport.abort()
        elif self._busy:
            if self._awaits_body and now - self._heard > body_s:
                self._time_out()
        elif self._head_since is not None:
            if now - self._head_since > HEAD_S:
                self._time_out()
        elif now - self._heard > IDLE_S:
            self.transport.close()

    @property
    def idle_since(self) -> float | None:
        """When the client last sent data, on the loop's clock; None while a request is being answered."""
        return None if self._busy else self._heard

    @property
    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _awaits_body(self) -> bool:
        cycle = self.cycle
        return cycle.more_body and not cycle.waiting_for_100_continue and not self.flow.read_paused

    def _time_out(self) -> None:
        self._refuse(
            b"RequestTimeout",
            b"Your socket connection to the server was not read from or written to within the timeout period.",
        )

    def _refuse(self, code: bytes, message: bytes) -> None:
        if self._busy and self.cycle.response_started:  # the error would become a part of that answer
            self.transport.abort()
            return
        body = _ERROR % (code, message)
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/xml\r\nconnection: close\r\n"
        self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        self.transport.close()

    def _make_room(self) -> None:
        # uvloop's clock stands still while it accepts connections: only the number tells which came first.
        idle = [
            (c.idle_since, c._number, c)
            for c in self.connections
            if isinstance(c, BoundedProtocol) and c is not self and c.idle_since is not None
        ]
        # If none is idle, the new connection itself is closed.
        victim = min(idle)[2] if idle else self
        victim.transport.close()
        self.connections.discard(victim)


def end_overdue(connections: Iterable[Any], now: float, *, crowded: bool = False) -> None:
    """Close all connections whose deadline has passed. Does not block.

    ``crowded``: as many request bodies as allowed are being read, and another request waits.
    """
    for connection in list(connections):
        if isinstance(connection, BoundedProtocol):
            connection.end_if_overdue(now, CROWDED_S if crowded else STALL_S)


def most_connections() -> int:
    """The most connections at once: `MAX_CONNECTIONS`, or fewer if the limit of file descriptors is low."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(16, min(MAX_CONNECTIONS, soft - _RESERVED_DESCRIPTORS))


def raise_descriptor_limit() -> None:
    """Raise the limit of file descriptors to what `MAX_CONNECTIONS` needs, as far as this process may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + _RESERVED_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
        except (OSError, ValueError) as error:
            log.info("the limit of open files stays at %d: %s", soft, error)
