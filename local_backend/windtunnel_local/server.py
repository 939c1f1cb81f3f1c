"""The HTTP server's life cycle: accept connections on loopback, announce it, exit when idle or on a signal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from windtunnel_local.connections import (
    IDLE_S,
    BoundedProtocol,
    end_overdue,
    raise_descriptor_limit,
)

log = logging.getLogger("windtunnel.server")

_TICK_S = 0.1
_GRACEFUL_S = 5
_SWEEP_S = 1.0
_BACKLOG = 1024


class Server(uvicorn.Server):
    """Serves one application until SIGTERM, SIGINT or idleness.

    ``accepting`` is called when the server has begun to accept connections, ``leaving`` before it stops.
    ``is_idle`` is called ten times a second, ``is_crowded`` (see `end_overdue`) once. None of them may
    block. ``ended`` is awaited last, in the same event loop.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        is_idle: Callable[[], bool],
        accepting: Callable[[], None],
        leaving: Callable[[], None],
        ended: Callable[[], Awaitable[None]] | None = None,
        is_crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=BoundedProtocol,
            log_level=logging.ERROR,  # no warnings of bad requests: they could fill the disk
            ws="none",
            loop="uvloop",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(IDLE_S),
            backlog=_BACKLOG,
            timeout_graceful_shutdown=_GRACEFUL_S,
        )
        raise_descriptor_limit()
        super().__init__(config)
        self._is_idle = is_idle
        self._accepting = accepting
        self._leaving = leaving
        self._ended = ended
        self._is_crowded = is_crowded

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections, then call ``accepting``."""
        await super().startup(sockets)
        self._accepting()

    async def main_loop(self) -> None:
        """Until the server shall exit: close overdue connections, and look whether it is idle."""
        now = asyncio.get_running_loop().time
        next_sweep = now() + _SWEEP_S
        while not self.should_exit:
            await self.on_tick(0)
            await asyncio.sleep(_TICK_S)
            if now() > next_sweep:
                end_overdue(self.server_state.connections, now(), crowded=self._is_crowded())
                next_sweep = now() + _SWEEP_S
            if self._is_idle():
                log.info("leaving: idle")
                self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Call ``leaving`` first, which removes backend.json: no client may read the address of a closed port."""
        self._leaving()
        await super().shutdown(sockets)
        if self._ended is not None:
            await self._ended()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Exit cleanly on SIGTERM and SIGINT. uvicorn's own handling would raise the signal again afterwards."""
        try:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._on_signal, number)
        except (RuntimeError, ValueError):
            pass  # not in the main thread, as in tests, which set `should_exit`
        yield

    def _on_signal(self, number: int) -> None:
        log.info("leaving: %s", signal.Signals(number).name)
        self.should_exit = True


def listen(port: int) -> socket.socket:
    """A socket bound to loopback. Raises ``OSError`` when the port is taken."""
    # asyncio turns Nagle's algorithm off only if the protocol is named; it would cost 40 ms a request.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
    except BaseException:
        sock.close()
        raise
    return sock
