"""Answers to questions of transform jobs and asynchronous endpoints, from containers that answer oddly."""

from __future__ import annotations

import errno
import http.client
import io
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fakes.objects import FakeObjects
from windtunnel_local.service.batch.invoking import Invoker, Lost
from windtunnel_local.service.ground.errors import InputError
from windtunnel_local.service.ground.hosting import Invocation
from windtunnel_local.service.hosting import async_call
from windtunnel_local.service.hosting.container_answer import connect

BODY = b"x" * (32 << 20)


@contextmanager
def container(answer: Callable[[socket.socket], None], connections: int = 1) -> Iterator[tuple[str, int]]:
    """The address of one that answers so many connections, one after the other."""

    def serve() -> None:
        for _ in range(connections):
            connection, _ = listener.accept()
            with connection:
                answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve)
        server.start()
        yield listener.getsockname()
        server.join()


def refuse(connection: socket.socket) -> None:
    """By its size, before all of it was read."""
    connection.recv(100)
    connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")


@pytest.mark.parametrize("streamed", [False, True])
def test_of_a_transform_job_that_comes_before_all_is_sent(streamed: bool) -> None:
    """The words of servers that refuse a body and hang up are the reason."""
    with container(refuse) as address:
        invoker = Invoker(address, {}, timeout_s=10, retries=0)
        with pytest.raises(InputError, match="ClientError: 413 from the container: big"):
            invoker.ask(io.BytesIO(BODY) if streamed else BODY)
        invoker.abort()


def test_of_an_asynchronous_endpoint_that_comes_before_all_is_sent(tmp_path: Path) -> None:
    """Likewise: it was no broken connection, after which the question would be asked again."""
    objects = FakeObjects(tmp_path, "data")
    objects.put("data", "in", io.BytesIO(BODY))
    question = Invocation("i", "e", 0, "s3://data/in", {}, "s3://data/out", None, 60, 60)
    with (
        container(refuse) as address,
        pytest.raises(
            async_call.InvocationFailedError, match=r'client error \(413\) from v with message "big"'
        ),
    ):
        async_call.ask(question, "v", address, objects)


@pytest.mark.parametrize("head", [b"Content-Length: 9\r\n", b"Connection: close\r\n"])
def test_an_answer_is_cut_off_where_the_job_is_stopped(head: bytes) -> None:
    """Also one that ends with its connection: what has come of it is not taken for the whole."""
    halfway = threading.Event()

    def stop() -> None:
        halfway.wait()
        invoker.abort()

    def begin(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\nhalf")
        halfway.set()
        while connection.recv(1000):
            pass

    with container(begin) as address:
        invoker = Invoker(address, {}, timeout_s=60, retries=0)
        threading.Thread(target=stop).start()
        with pytest.raises(Lost) as lost:
            invoker.ask(b"hello")
        assert lost.value.begun


@pytest.mark.parametrize(("a_connection", "connections"), [(3, 1), (1, 3)])
def test_a_transform_job_keeps_its_connection_until_the_container_closes_it(
    a_connection: int, connections: int
) -> None:
    """Each record's own would take a port for a minute. One that was closed while idle is not asked."""
    closed = threading.Semaphore(0)

    def answer(connection: socket.socket) -> None:
        for _ in range(a_connection):
            asked = b""
            while not asked.endswith(b"hello"):
                asked += connection.recv(1000)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        connection.shutdown(socket.SHUT_WR)
        closed.release()

    with container(answer, connections) as address:
        invoker = Invoker(address, {}, timeout_s=10, retries=0)
        for _ in range(connections):
            for _ in range(a_connection):
                assert invoker.ask(b"hello") == b"ok"
            assert closed.acquire(timeout=10)
        invoker.abort()
        with pytest.raises(Lost) as lost:
            invoker.ask(b"hello")
        assert not lost.value.begun


class WithoutPorts(http.client.HTTPConnection):
    """A machine that has none left for the first tries."""

    def __init__(self, tries: int) -> None:
        super().__init__("127.0.0.1")
        self.left = tries

    def connect(self) -> None:
        if self.left:
            self.left -= 1
            raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")


def test_a_port_is_waited_for() -> None:
    """That none is free says nothing of the container; an end of the job, or of the time, ends the wait."""
    over = threading.Event()
    connect(WithoutPorts(2), time.monotonic() + 10, over)
    with pytest.raises(OSError, match="Cannot assign"):
        connect(WithoutPorts(2), time.monotonic() - 1, over)
    over.set()
    with pytest.raises(OSError, match="Cannot assign"):
        connect(WithoutPorts(2), time.monotonic() + 10, over)
