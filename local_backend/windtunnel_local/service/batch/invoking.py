"""Sends requests to a container, repeats them, and decides what a failed one means."""

from __future__ import annotations

import http.client
import json
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from http import HTTPStatus
from typing import Any, BinaryIO
from weakref import WeakSet

from windtunnel_local.service.batch.splitting import reading
from windtunnel_local.service.ground.errors import InputError
from windtunnel_local.service.hosting.container_answer import KEPT_S, ContainerAnswer, TooLargeError, connect

Address = tuple[str, int]
_PARAMETERS_S = 60.0
_MOST_WANTED = 100
"""The largest values taken from a container's execution parameters: megabytes, and requests at once."""
_PAUSE_S = 0.2
_PART_BYTES = 1 << 16
_SHOWN_CHARACTERS = 2048
MAX_ANSWER_BYTES = 100 << 20
"""The largest answer: as large as the largest request."""


class Lost(Exception):
    """The connection to the container was lost. ``begun``: whether the container may have got the request."""

    def __init__(self, begun: bool) -> None:
        super().__init__()
        self.begun = begun


class Invoker:
    """Sends requests to one container. Thread-safe. Reuses connections: a closed one blocks its port for a minute."""

    def __init__(self, address: Address, headers: Mapping[str, str], timeout_s: float, retries: int) -> None:
        """``timeout_s``: for the whole answer; ``retries``: how often a failed request is sent again."""
        self._address = address
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._retries = retries
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._socks: WeakSet[socket.socket] = WeakSet()
        self._kept: list[tuple[http.client.HTTPConnection, float]] = []
        """Idle connections, and since when (monotonic seconds)."""

    def abort(self) -> None:
        """Break off all requests, and refuse new ones: each raises `Lost`. Does not block."""
        with self._lock:
            self._over.set()
            while self._kept:
                self._kept.pop()[0].close()
            for sock in self._socks:
                with suppress(OSError):  # closed already
                    sock.shutdown(socket.SHUT_RDWR)

    def ask(self, body: bytes | BinaryIO) -> bytes:
        """Send a request and return the answer; repeat it after a timeout, a 5xx or a 429. Blocks.

        Raises:
            InputError: the last repetition failed too, the container refused the request (4xx), or the answer is too
                large.
            Lost: the connection to the container was lost, or `abort` was called.
        """
        left = self._retries
        while True:
            try:
                status, answer = self._sent(body)
            except TimeoutError:
                reason = (
                    f"AlgorithmError: no answer within {self._timeout_s:g} s (InvocationsTimeoutInSeconds)"
                )
            else:
                if status == HTTPStatus.OK:
                    return answer
                code = "ClientError" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "AlgorithmError"
                shown = answer[:_SHOWN_CHARACTERS].decode(errors="replace").strip()
                reason = f"{code}: {status} from the container: {shown}"
                if code == "ClientError" and status != HTTPStatus.TOO_MANY_REQUESTS:
                    raise InputError(reason)
            if left <= 0:
                raise InputError(reason)
            left -= 1
            self._over.wait(_PAUSE_S)

    def _sent(self, body: bytes | BinaryIO) -> tuple[int, bytes]:
        """Status and body of the answer. Raises ``TimeoutError``, `Lost`, and ``InputError`` if it is too large."""
        deadline = time.monotonic() + self._timeout_s
        sent = body if isinstance(body, bytes) else _parts(body)
        with ExitStack() as stack:
            connection = self._connection(deadline)
            stack.callback(connection.close)
            try:
                answer = ContainerAnswer(connection, sent, self._headers, deadline, MAX_ANSWER_BYTES)
                data = b"".join(iter(partial(answer.read, _PART_BYTES), b""))
            except TimeoutError:
                raise
            except TooLargeError:
                raise InputError(
                    f"AlgorithmError: an answer is larger than {MAX_ANSWER_BYTES >> 20} MB, the most that is held"
                    " in memory here; send fewer records at once (MaxPayloadInMB)"
                ) from None
            # ValueError: another thread has closed the stream.
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise Lost(begun=True) from error
            with self._lock:
                if self._over.is_set():  # after `abort`, an answer without a length only seems complete
                    raise Lost(begun=True)
                if connection.sock is not None:  # None if the container closes the connection
                    stack.pop_all()
                    self._kept.append((connection, time.monotonic()))
            return answer.status, data

    def _connection(self, deadline: float) -> http.client.HTTPConnection:
        """A kept connection, or a new one. Raises ``TimeoutError``, `Lost`."""
        with self._lock:
            while self._kept:
                connection, since = self._kept.pop()
                if time.monotonic() - since < KEPT_S and not _has_news(connection.sock):
                    return connection
                connection.close()
        connection = http.client.HTTPConnection(*self._address, timeout=self._timeout_s)
        try:
            connect(connection, deadline, self._over)
        except TimeoutError:
            raise
        except OSError as error:
            raise Lost(begun=False) from error
        with self._lock:
            self._socks.add(connection.sock)
            if not self._over.is_set():
                return connection
        connection.close()
        raise Lost(begun=False)


def _has_news(sock: socket.socket) -> bool:
    """Whether an idle connection cannot be reused: the container has closed it, or has sent unexpected bytes."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _parts(stream: BinaryIO) -> Iterator[bytes]:
    with reading():
        stream.seek(0)
        while part := stream.read(_PART_BYTES):
            yield part


def execution_parameters(address: Address) -> dict[str, Any]:
    """The container's MaxConcurrentTransforms, MaxPayloadInMB and BatchStrategy, without those it does not give."""
    connection = http.client.HTTPConnection(*address, timeout=_PARAMETERS_S)
    try:
        connection.request("GET", "/execution-parameters")
        answer = connection.getresponse()
        document = json.loads(answer.read(_PART_BYTES)) if answer.status == HTTPStatus.OK else {}
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return {}
    finally:
        connection.close()
    told = document if isinstance(document, dict) else {}
    return {name: value for name, value in told.items() if _is_valid(name, value)}


def _is_valid(name: str, value: Any) -> bool:
    if name == "BatchStrategy":
        return value in ("SINGLE_RECORD", "MULTI_RECORD")
    least = {"MaxConcurrentTransforms": 1, "MaxPayloadInMB": 0}.get(name)
    return least is not None and type(value) is int and least <= value <= _MOST_WANTED
