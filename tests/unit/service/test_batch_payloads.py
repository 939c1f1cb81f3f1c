"""What is sent to a container of a transform job, and how."""

from __future__ import annotations

import io
import socket
import threading
import tracemalloc

import pytest

from windtunnel_local.service.batch.invoking import Invoker
from windtunnel_local.service.batch.splitting import payloads
from windtunnel_local.service.ground.errors import InputError

_MB = 1 << 20


def test_short_lines_take_no_more_memory_than_long_ones() -> None:
    """A file of nothing but newlines is held a few times, not an object for each line."""
    stream = io.BytesIO(b"\n" * (4 * _MB))
    tracemalloc.start()
    try:
        (payload,) = payloads(stream, by_line=True, several=True, most_mb=6, processing=None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert payload.body == b"\n" * (4 * _MB)
    assert peak < 16 * _MB


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_comes_before_all_is_sent(streamed: bool) -> None:
    """As from servers that refuse a body by its size and hang up: their words are the reason."""

    def refuse() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(100)
            connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig")

    body = b"x" * (32 * _MB)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=refuse)
        server.start()
        invoker = Invoker(listener.getsockname(), {}, timeout_s=10, retries=0)
        with pytest.raises(InputError, match="ClientError: 413 from the container: big"):
            invoker.ask(io.BytesIO(body) if streamed else body)
        server.join()
