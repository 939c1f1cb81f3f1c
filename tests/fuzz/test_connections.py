"""What slow, silent, greedy and odd clients can hold of the server has bounds; others are served meanwhile."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from tests.fuzz.campaign import Target
from tests.fuzz.wire import Connection, Message
from windtunnel_local import connections
from windtunnel_local.connections import end_overdue
from windtunnel_local.server import Server, listen

HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"


def opened(server: Target, data: bytes = b"") -> socket.socket:
    """A connection on which some bytes were sent."""
    client = socket.create_connection(("127.0.0.1", server.port), 10)
    client.sendall(data)
    return client


def everything(client: socket.socket) -> bytes:
    """All that comes until the server hangs up."""
    with client:
        parts = []
        try:
            while part := client.recv(65536):
                parts.append(part)
        except ConnectionResetError:
            pass
        return b"".join(parts)


def healthy(server: Target) -> bool:
    """Whether a client that behaves is served."""
    with Connection(server.port, timeout_s=10) as connection:
        return (
            connection.exchange(Message("GET", "/health", [("Host", f"127.0.0.1:{server.port}")])).status
            == 200
        )


def test_500_silent_clients_do_not_keep_others_out(server: Target) -> None:
    """Half of them with half a request."""
    head = HEALTH % server.port
    with ExitStack() as stack:
        for number in range(500):
            stack.enter_context(opened(server, head if number % 2 else b""))
        for _ in range(20):
            assert healthy(server)


def test_more_clients_than_there_is_room_for(server: Target) -> None:
    """The ones that have been silent for longest make room; whoever asks is served."""
    with ExitStack() as stack:
        first = stack.enter_context(opened(server))
        for _ in range(connections.MAX_CONNECTIONS + 20):
            stack.enter_context(opened(server))
        assert healthy(server)
        first.settimeout(10)
        assert first.recv(10) == b"", "the oldest one was let go"


def test_pipelined_requests_are_answered_in_order(server: Target) -> None:
    """A hundred of them in one write."""
    head = HEALTH % server.port
    request = head + b"\r\n"
    last = head + b"Connection: close\r\n\r\n"
    answers = everything(opened(server, request * 99 + last))
    assert answers.count(b"HTTP/1.1 200 OK") == 100


@pytest.mark.parametrize("method", [b"HEAD", b"OPTIONS", b"TRACE", b"DELETE", b"PATCH", b"QUERY"])
def test_odd_methods_leave_the_connection_usable(server: Target, method: bytes) -> None:
    """Refused without a key, and the next request is understood."""
    head = HEALTH % server.port
    odd = b"%s / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (method, server.port)
    answers = everything(opened(server, odd + head + b"Connection: close\r\n\r\n"))
    assert answers.startswith(b"HTTP/1.1 403")
    assert answers.count(b"HTTP/1.1 200 OK") == 1
    if method == b"TRACE":
        assert b"TRACE /" not in answers


def test_http_1_0_is_answered_and_closed(server: Target) -> None:
    """And needs its Host as well."""
    host = b"Host: 127.0.0.1:%d\r\n" % server.port
    assert everything(opened(server, b"GET /health HTTP/1.0\r\n" + host + b"\r\n")).startswith(
        b"HTTP/1.1 200"
    )
    assert everything(opened(server, b"GET /health HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 403")


def test_a_client_that_says_no_more_is_answered(server: Target) -> None:
    """It may close its side once its request is complete; in the middle of a body that is an error, and said."""
    for sent, said in (
        (HEALTH % server.port + b"\r\n", b"HTTP/1.1 200"),
        (
            b"PUT /a HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 9\r\n\r\nabc" % server.port,
            b"IncompleteBody",
        ),
        (b"GET / HT", b""),
    ):
        client = opened(server, sent)
        client.shutdown(socket.SHUT_WR)
        assert said in everything(client)


@pytest.mark.parametrize("upgrade", [b"websocket", b"h2c", b"TLS/1.0"])
def test_nothing_is_upgraded(server: Target, upgrade: bytes) -> None:
    """The request is answered as if it had not asked."""
    head = (HEALTH % server.port) + b"Connection: Upgrade, close\r\nUpgrade: %s\r\n\r\n" % upgrade
    with opened(server, head) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 300,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nBad Name: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 40_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 6000 + b"\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 201 + b"\r\n",
        b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_http_is_400_and_the_end(server: Target, raw: bytes) -> None:
    """In the words of S3, without a repetition of what came in."""
    answer = everything(opened(server, raw))
    assert answer.startswith(b"HTTP/1.1 400 Bad Request")
    assert b"connection: close" in answer
    assert b"<Code>BadRequest</Code>" in answer
    assert len(answer) < 700


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads the body, answers ten megabytes."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(10):
        await send({"type": "http.response.body", "body": b"x" * (1 << 20), "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "after_s", "said"),
    [
        (POST + b"abc", connections.CROWDED_S, b"RequestTimeout"),
        (b"", connections.IDLE_S, b""),
        (b"GET / HT", connections.HEAD_S, b"RequestTimeout"),
        (POST, connections.STALL_S, b"RequestTimeout"),
        (POST + b"abc", connections.STALL_S, b"RequestTimeout"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", connections.STALL_S, b"HTTP/1.1 200"),
    ],
)
def test_every_state_has_a_deadline(sent: bytes, after_s: float, said: bytes) -> None:
    """Silent, half a head, no body, half a body, an answer that nobody takes: all end, and not before their time."""

    async def main() -> bytes:
        sock = listen(0)
        server = Server(_app, is_idle=lambda: False, accepting=lambda: None, leaving=lambda: None)
        serving = asyncio.create_task(server.serve([sock]))
        while not server.started:
            await asyncio.sleep(0.01)
        loop = asyncio.get_running_loop()
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        await loop.sock_connect(client, sock.getsockname())
        await loop.sock_sendall(client, sent)
        held = server.server_state.connections
        await until(lambda: len(held) == 1 and (not sent or _heard(next(iter(held)))))
        crowded = after_s == connections.CROWDED_S
        end_overdue(held, loop.time() + after_s - 5, crowded=crowded)
        await asyncio.sleep(0.02)
        assert len(held) == 1, "not before its time"
        end_overdue(
            held,
            loop.time() + (after_s if crowded else max(after_s, connections.IDLE_S)) + 5,
            crowded=crowded,
        )
        await until(lambda: not held)
        answer = b""
        try:
            while part := await asyncio.wait_for(loop.sock_recv(client, 1 << 20), 60):
                answer += part
        except ConnectionResetError:
            pass
        client.close()
        server.should_exit = True
        await serving
        sock.close()
        return answer

    assert said in asyncio.run(main())


def _heard(connection: Any) -> bool:
    """Whether the bytes have come in, and an answer that is under way is stuck."""
    if connection.cycle is not None and not connection.cycle.more_body:
        return bool(connection.flow.write_paused)
    return (
        bool(connection.cycle) or connection._head_since is not None or not connection.conn.trailing_data[0]
    )


async def until(condition: Callable[[], bool]) -> None:
    """Poll until something is true."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.01)
