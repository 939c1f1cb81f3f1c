"""A container's answer to one question that is too large or too slow for `api/container_calls.py`."""

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
"""For how long an idle connection is used again: less than the 5 s after which common servers close theirs."""
_NO_PORT_S = 0.1


def acknowledge_at_once(sock: socket.socket) -> None:
    """For the next answer: servers that write its head and its body apart wait for our word in between.

    On a connection that is used again it would come 40 ms late (TCP's delayed acknowledgement and Nagle's algorithm).
    """
    if hasattr(socket, "TCP_QUICKACK"):  # Linux
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def connect(connection: http.client.HTTPConnection, deadline: float, over: threading.Event) -> None:
    """Open it; waits until ``deadline`` for a free port: many connections a second leave none for a minute.

    Raises:
        OSError: nothing listens, or ``over`` was set while no port was free.
    """
    while True:
        try:
            return connection.connect()
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL or time.monotonic() > deadline or over.wait(_NO_PORT_S):
                raise


class TooLargeError(Exception):
    """The answer is."""


class ContainerAnswer:
    """``status`` and ``headers``, and the body as it is read: within its time and size, and whole."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        body: bytes | BinaryIO | Iterable[bytes],
        headers: Mapping[str, str],
        deadline: float,
        most_bytes: int,
    ) -> None:
        """Ask, on a connection that is open, and wait for the answer's head. Blocks.

        ``deadline``: by the monotonic clock. Parts without a Content-Length go in chunks.

        Raises:
            TimeoutError: after ``deadline``.
            OSError, http.client.HTTPException: the connection broke off.
        """
        self._sock = connection.sock  # the connection forgets it when it ends with the answer
        self._deadline = deadline
        self._left = most_bytes
        with suppress(BrokenPipeError, ConnectionResetError):
            # It may have answered before it has read all, as servers do that limit the size.
            connection.request("POST", "/invocations", body, headers)
        self._wait_no_longer()
        acknowledge_at_once(self._sock)
        self._response = connection.getresponse()
        self.status, self.headers = self._response.status, self._response.headers

    def read(self, size: int = -1) -> bytes:
        """The next bytes; none at the end. Raises `TooLargeError`, and as the constructor."""
        self._wait_no_longer()
        part = self._response.read1(size)
        self._left -= len(part)
        if self._left < 0:
            raise TooLargeError
        if not part:
            if self._response.length:  # what is missing, of a length that was announced
                raise http.client.IncompleteRead(b"", self._response.length)
            self._response.close()  # by itself it does not see its end, and the connection takes no other request
        return part

    def _wait_no_longer(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if self._sock.fileno() >= 0:  # it is closed as soon as all was read
            self._sock.settimeout(left)
