"""A container's answer to one question that is too large or too slow for `api/container_calls.py`."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import BinaryIO


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
        self._response = connection.getresponse()
        self.status, self.headers = self._response.status, self._response.headers

    def read(self, size: int = -1) -> bytes:
        """The next bytes; none at the end. Raises `TooLargeError`, and as the constructor."""
        self._wait_no_longer()
        part = self._response.read1(size)
        self._left -= len(part)
        if self._left < 0:
            raise TooLargeError
        if not part and self._response.length:  # what is missing, of a length that was announced
            raise http.client.IncompleteRead(b"", self._response.length)
        return part

    def _wait_no_longer(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if self._sock.fileno() >= 0:  # it is closed as soon as all was read
            self._sock.settimeout(left)
