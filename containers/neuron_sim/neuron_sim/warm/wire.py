"""The protocol between a fork server and its clients: JSON lines over a Unix socket.

A client sends one request together with its standard streams, and gets ``{"pid": ...}`` or
``{"refused": why}``, and when the process has ended ``{"status": as os.waitpid gives it}``.
The sockets have no path: they live and end with the container's network namespace.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VARIABLE = "NEURON_SIM_FORK_SERVERS"
"""Set for the jobs of a kept container: the token under which its servers listen."""

_LENGTH = struct.Struct("!I")
_PEER = struct.Struct("3i")
_LIMITS = tuple(name for name in dir(resource) if name.startswith("RLIMIT_"))


@dataclass(frozen=True)
class Request:
    """A process that a client asks for: its arguments, surroundings and standard streams."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    umask: int
    limits: dict[str, list[int]]
    """Soft and hard limit, by name in `resource`: a script may call `ulimit -n` before torchrun."""
    processors: list[int]
    streams: tuple[int, int, int]


def listen(token: str, program: str) -> socket.socket:
    """A socket on which a server for ``program`` listens; requests may come before it answers."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(_address(token, program))
    listener.listen(16)
    return listener


def connect(token: str, program: str) -> socket.socket:
    """Connect to the server for ``program``. Raises ``OSError`` if none listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(_address(token, program))
    except OSError:
        connection.close()
        raise
    return connection


def send_request(connection: socket.socket, arguments: list[str], environment: dict[str, str]) -> None:
    """Ask for a process with this one's folder, umask, limits, processors and standard streams."""
    umask = os.umask(0o077)
    os.umask(umask)
    limits = {name: resource.getrlimit(getattr(resource, name)) for name in _LIMITS}
    processors = sorted(os.sched_getaffinity(0))
    of_process = {"folder": str(Path.cwd()), "umask": umask, "limits": limits, "processors": processors}
    body = json.dumps({"arguments": arguments, "environment": environment, **of_process}).encode(
        "utf-8", "surrogateescape"
    )
    socket.send_fds(connection, [_LENGTH.pack(len(body))], [0, 1, 2])
    connection.sendall(body)


def receive_request(connection: socket.socket) -> Request:
    """Read a request. Raises ``ValueError`` or ``OSError`` if it is malformed, or another user's. Blocks."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    if _PEER.unpack(credentials)[1] != os.getuid():
        raise ValueError("a request of another user")
    head, streams, _, _ = socket.recv_fds(connection, _LENGTH.size, 3)
    try:
        if len(head) != _LENGTH.size or len(streams) != 3:
            raise ValueError("a request without its streams")
        body = b""
        while len(body) < _LENGTH.unpack(head)[0]:
            part = connection.recv(1 << 16)
            if not part:
                raise ValueError("half a request")
            body += part
        found = json.loads(body.decode("utf-8", "surrogateescape"))
        return Request(
            list(found["arguments"]),
            dict(found["environment"]),
            found["folder"],
            found["umask"],
            found["limits"],
            found["processors"],
            (streams[0], streams[1], streams[2]),
        )
    except BaseException:
        for descriptor in streams:
            os.close(descriptor)
        raise


def say(connection: socket.socket, **answer: Any) -> None:
    """Send one line; if the client is gone, nothing happens."""
    with contextlib.suppress(OSError):
        connection.sendall(json.dumps(answer).encode() + b"\n")


class Answers:
    """The lines that come back on a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""

    def next(self) -> dict[str, Any] | None:
        """The next line, or None when the server is gone. Blocks as the socket does."""
        while b"\n" not in self._rest:
            try:
                part = self._connection.recv(4096)
            except ConnectionError:
                return None
            if not part:
                return None
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found


def _address(token: str, program: str) -> str:
    return f"\0neuron_sim.{token}.{program}"
