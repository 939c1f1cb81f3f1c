"""One request to a container, and what it means that there is no good answer."""

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
"""Of megabytes, and of requests at once, each."""
_PAUSE_S = 0.2
_PART_BYTES = 1 << 16
_SHOWN_CHARACTERS = 2048
MAX_ANSWER_BYTES = 100 << 20
"""As much as the largest request."""


class Lost(Exception):
    """The container has gone. ``begun``: it may have seen the request."""

    def __init__(self, begun: bool) -> None:
        super().__init__()
        self.begun = begun


class Invoker:
    """Asks one container, for several threads. Connections are kept: each takes a port, free again a minute later."""

    def __init__(self, address: Address, headers: Mapping[str, str], timeout_s: float, retries: int) -> None:
        """``timeout_s``: for an answer as a whole; ``retries``: how often a request is asked again."""
        self._address = address
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._retries = retries
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._socks: WeakSet[socket.socket] = WeakSet()
        self._kept: list[tuple[http.client.HTTPConnection, float]] = []
        """Idle ones, and since when."""

    def abort(self) -> None:
        """End all requests under way, and let none begin: they are `Lost`. Does not block."""
        with self._lock:
            self._over.set()
            while self._kept:
                self._kept.pop()[0].close()
            for sock in self._socks:
                with suppress(OSError):  # closed already
                    sock.shutdown(socket.SHUT_RDWR)

    def ask(self, body: bytes | BinaryIO) -> bytes:
        """The answer; asked again after errors of the container (5xx) and when it takes too long. Blocks.

        Raises:
            InputError: it answers with an error still, has refused the request (4xx), or the answer is too large.
            Lost: there is no container any more, or `abort` was called.
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
        """Status and body of the answer. Raises ``TimeoutError``, `Lost`, ``InputError``: it is too large."""
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
            # ValueError: the stream was closed meanwhile.
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise Lost(begun=True) from error
            with self._lock:
                if self._over.is_set():  # an answer without a length seems to end there
                    raise Lost(begun=True)
                if connection.sock is not None:  # it is None where the container wants to close it
                    stack.pop_all()
                    self._kept.append((connection, time.monotonic()))
            return answer.status, data

    def _connection(self, deadline: float) -> http.client.HTTPConnection:
        """One that is kept, or a new one. Raises ``TimeoutError``, `Lost`."""
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
    """Of an idle connection: the container has hung up, or sent what nobody asked for."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _parts(stream: BinaryIO) -> Iterator[bytes]:
    with reading():
        stream.seek(0)
        while part := stream.read(_PART_BYTES):
            yield part


def execution_parameters(address: Address) -> dict[str, Any]:
    """What the container wants: MaxConcurrentTransforms, MaxPayloadInMB, BatchStrategy; empty if it does not say."""
    connection = http.client.HTTPConnection(*address, timeout=_PARAMETERS_S)
    try:
        connection.request("GET", "/execution-parameters")
        answer = connection.getresponse()
        document = json.loads(answer.read(_PART_BYTES)) if answer.status == HTTPStatus.OK else {}
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return {}
    finally:
        connection.close()
    return {name: value for name, value in _pairs(document) if _is_valid(name, value)}


def _pairs(document: object) -> list[tuple[str, Any]]:
    return list(document.items()) if isinstance(document, dict) else []


def _is_valid(name: str, value: Any) -> bool:
    if name == "BatchStrategy":
        return value in ("SINGLE_RECORD", "MULTI_RECORD")
    least = {"MaxConcurrentTransforms": 1, "MaxPayloadInMB": 0}.get(name)
    return least is not None and type(value) is int and least <= value <= _MOST_WANTED
