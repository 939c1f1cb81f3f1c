"""Calls a container and reads its answer, which may be too large or too slow for `api/container_calls.py`."""

from __future__ import annotations

import errno
import http.client
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import BinaryIO

KEPT_S = 4.0
"""Longest idle time, in seconds, of a connection that is used again: common servers close theirs after 5 s."""
_NO_PORT_S = 0.1


def acknowledge_at_once(sock: socket.socket) -> None:
    """Switch off TCP's delayed acknowledgement for the next answer.

    Servers that write an answer's head and body in two writes wait for an acknowledgement in between (Nagle's
    algorithm). On a reused connection it would come 40 ms late.
    """
    if hasattr(socket, "TCP_QUICKACK"):  # Linux
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def connect(connection: http.client.HTTPConnection, deadline: float, over: threading.Event) -> None:
    """Open the connection; wait until ``deadline`` (monotonic) if no local port is free.

    Many connections a second use up all local ports, which become free again a minute later.

    Raises:
        OSError: nothing listens, or no port was free before ``deadline`` or until ``over`` was set.
    """
    while True:
        try:
            return connection.connect()
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL or time.monotonic() > deadline or over.wait(_NO_PORT_S):
                raise


class TooLargeError(Exception):
    """The answer is larger than allowed."""


class ContainerAnswer:
    """The answer to a request: ``status``, ``headers``, and the body from `read`, within limits of time and size."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        body: bytes | BinaryIO | Iterable[bytes],
        headers: Mapping[str, str],
        deadline: float,
        most_bytes: int,
    ) -> None:
        """Send the request on an open connection, and wait for the answer's head. Blocks.

        ``deadline``: monotonic seconds. A body in parts, without a Content-Length, is sent in HTTP chunks.

        Raises:
            TimeoutError: ``deadline`` has passed.
            OSError, http.client.HTTPException: the connection broke off.
        """
        self._sock = connection.sock  # kept here, as a connection that ends with the answer drops its socket
        self._deadline = deadline
        self._left = most_bytes
        with suppress(BrokenPipeError, ConnectionResetError):
            # A server that limits the size may answer before it has read the whole body.
            connection.request("POST", "/invocations", body, headers)
        self._wait_no_longer()
        acknowledge_at_once(self._sock)
        self._response = connection.getresponse()
        self.status, self.headers = self._response.status, self._response.headers

    def read(self, size: int = -1) -> bytes:
        """The next bytes; empty at the end. Raises `TooLargeError`, and the constructor's errors."""
        self._wait_no_longer()
        part = self._response.read1(size)
        self._left -= len(part)
        if self._left < 0:
            raise TooLargeError
        if not part:
            if self._response.length:  # bytes of the Content-Length that have not come
                raise http.client.IncompleteRead(b"", self._response.length)
            self._response.close()  # `read1` does not close it at the end, and then the connection cannot be reused
        return part

    def _wait_no_longer(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if self._sock.fileno() >= 0:  # a socket is closed already once the whole answer was read
            self._sock.settimeout(left)
