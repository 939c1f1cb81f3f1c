"""The port of a home's server: the same one after each start, so that clients' settings stay valid."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterator
from pathlib import Path

from windtunnel.atomic_file import replace_whole
from windtunnel_local.server import listen

# Below the kernel's range for outgoing connections (on Linux from 32768 on), so that no outgoing
# connection takes the port while no server runs.
_FIRST, _LAST = 20_000, 29_999
_TRIES = 50
_TAKEN = (errno.EADDRINUSE, errno.EACCES)
_MAX_PORT = 65535


def listen_for(home: Path, port: int) -> socket.socket:
    """A TCP socket bound to ``port`` on loopback. 0: to the port that this home used last, or else to a free one.

    A port that is chosen here is written to the home, and tried first the next time.

    Raises:
        OSError: ``port`` is in use or not allowed for this user, or no port is free.
    """
    if port:
        return _listen_there(port)
    note = home / "port"
    for candidate in _candidates(note):
        try:
            bound = listen(candidate)
        except OSError as error:
            if candidate and error.errno in _TAKEN:
                continue
            raise
        _remember(note, bound.getsockname()[1])
        return bound
    raise AssertionError("the last candidate, any free port, is taken or raises")


def _listen_there(port: int) -> socket.socket:
    try:
        return listen(port)
    except OSError as error:
        raise OSError(
            error.errno,
            f"WINDTUNNEL_PORT={port} cannot be listened on: {error.strerror}. "
            "Name another port, or unset it: a free one is chosen, and kept.",
        ) from error


def _candidates(note: Path) -> Iterator[int]:
    last = _remembered(note)
    if last is not None:
        yield last
    yield from random.sample(range(_FIRST, _LAST + 1), _TRIES)
    yield 0


def _remembered(note: Path) -> int | None:
    try:
        port = int(note.read_text("ascii"))
    except (OSError, ValueError):
        return None
    return port if 0 < port <= _MAX_PORT else None


def _remember(note: Path, port: int) -> None:
    if _remembered(note) != port:
        replace_whole(note, f"{port}\n")
