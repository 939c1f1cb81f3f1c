"""What the server makes of containers that answer oddly: HTTP has several ways to say a thing."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import closing, suppress
from typing import Any

import pytest

from windtunnel_local.api import container_calls
from windtunnel_local.api.container_calls import ContainerCalls, NeverSentError

ENOUGH = 5.0


async def exchange(
    *answers: bytes, timeout_s: float = ENOUGH, hang: bool = False, read_after_s: float = 0
) -> tuple[list[tuple[int, bytes]], int]:
    """Status and body of each request to a container that says these, and how many connections it saw."""
    left, over = list(answers), asyncio.Event()
    serving: list[asyncio.Future[None]] = []

    async def container(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.current_task())  # type: ignore[arg-type]  # there is one
        while left:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            assert head.startswith(b"POST /invocations HTTP/1.1\r\n")
            assert await reader.readexactly(5) == b"hello"
            answer = left.pop(0)
            writer.write(answer)
            if b"keep" not in answer:
                break
        if hang:
            await over.wait()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(container, "127.0.0.1", 0)
    calls, found = ContainerCalls(), []
    try:
        address = server.sockets[0].getsockname()[:2]
        for _ in answers:
            answer = await calls.post(address, "/invocations", {"A": "b"}, b"hello", timeout_s)
            try:
                await asyncio.sleep(read_after_s)
                body = b""
                while part := await answer.next_part():
                    body += part
                found.append((answer.status, body))
            finally:
                answer.close()
    finally:
        calls.close()
        over.set()
        await asyncio.gather(*serving)
        server.close()
        await server.wait_closed()
    return found, len(serving)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\ntrailer: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\n\r\nok",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ],
)
def test_ways_to_say_the_same(answer: bytes) -> None:
    """A length, chunks, until the connection ends, and behind an announcement."""
    assert asyncio.run(exchange(answer))[0] == [(200, b"ok")]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\no",
        b"HTTP/1.1 200 OK\r\na: " + b"b" * 300_000,
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
    ],
)
def test_what_is_no_answer(answer: bytes) -> None:
    """It is an error, and not taken for a request that was never sent."""
    with pytest.raises(OSError, match=r".") as caught:
        asyncio.run(exchange(answer))
    assert not isinstance(caught.value, NeverSentError)


def test_connections_are_kept_where_both_want_that() -> None:
    """Two requests on one; a new one for each where the container closes."""
    kept = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nkeep"
    assert asyncio.run(exchange(kept, kept)) == ([(200, b"keep")] * 2, 1)
    closed = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 4\r\n\r\nkeep"
    assert asyncio.run(exchange(closed, closed))[1] == 2


def test_a_second_answer_to_a_question_is_nobodys() -> None:
    """Neither appended to the first one, nor taken for that to the next question."""
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
    twice = answer + b"keep" + answer + b"evil"
    assert asyncio.run(exchange(twice, answer + b"keep")) == ([(200, b"keep")] * 2, 2)


def test_a_question_that_was_not_read_whole_leaves_no_connection() -> None:
    """What is left of it would stand before the next one."""

    async def ask() -> int:
        seen = asyncio.Queue[asyncio.StreamWriter]()

        async def container(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.put_nowait(writer)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")

        async with await asyncio.start_server(container, "127.0.0.1", 0) as server:
            calls = ContainerCalls()
            for _ in range(2):
                address = server.sockets[0].getsockname()
                answer = await calls.post(address, "/invocations", {}, bytes(32 << 20), ENOUGH)
                assert (answer.status, await answer.next_part()) == (413, b"")
                answer.close()
            calls.close()
            found = seen.qsize()
            while not seen.empty():
                seen.get_nowait().close()
            return found

    assert asyncio.run(ask()) == 2


def test_an_idle_connection_is_closed_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that answers one connection at a time would answer no ping."""
    monkeypatch.setattr(container_calls, "KEPT_S", 0.05)

    async def ask() -> bytes:
        hung_up = asyncio.get_running_loop().create_future()

        async def container(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"hello")
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            hung_up.set_result(await reader.read())
            writer.close()

        async with await asyncio.start_server(container, "127.0.0.1", 0) as server:
            calls = ContainerCalls()
            answer = await calls.post(server.sockets[0].getsockname(), "/", {}, b"hello", ENOUGH)
            assert await answer.next_part() == b""
            answer.close()
            return await asyncio.wait_for(hung_up, ENOUGH)

    assert asyncio.run(ask()) == b""


def test_an_answer_that_was_held_whole_leaves_a_connection_that_is_read() -> None:
    """Its last byte is the one that made the container wait."""
    body = b"keep".ljust((1 << 20) + 1)
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    assert asyncio.run(exchange(answer, answer, read_after_s=0.1)) == ([(200, body)] * 2, 1)


def test_one_that_never_answers() -> None:
    """Neither at all nor to its end."""
    for answer in (b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok"):
        with pytest.raises(asyncio.TimeoutError):
            asyncio.run(exchange(answer, timeout_s=0.2, hang=True))


def test_nobody_listens() -> None:
    """The request can go to another instance."""

    async def ask() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()[:2]
        server.close()
        await server.wait_closed()
        await ContainerCalls().post(address, "/", {}, b"", ENOUGH)

    with pytest.raises(NeverSentError):
        asyncio.run(ask())


class Busy(asyncio.SelectorEventLoop):
    """One that gets round to a new connection only when the other side has hung up."""

    async def create_connection(self, *arguments: Any, **options: Any) -> tuple[Any, Any]:
        """As any loop's, but later."""
        transport, protocol = await super().create_connection(*arguments, **options)
        while not transport.is_closing():
            await asyncio.sleep(0.001)
        return transport, protocol


@pytest.mark.parametrize("abruptly", [False, True])
def test_it_hangs_up_before_it_is_asked(abruptly: bool) -> None:
    """As the engine's proxy does for a container that has just ended: the request can go to another instance."""

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if abruptly:
            reset = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        writer.close()

    async def ask() -> None:
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            address = server.sockets[0].getsockname()[:2]
            await ContainerCalls().post(address, "/", {}, b"hello", ENOUGH)

    loop = Busy()
    with closing(loop), pytest.raises(NeverSentError, match="before it was asked"):
        loop.run_until_complete(ask())
