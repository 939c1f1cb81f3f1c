"""The Unix socket through which the code of a job calls the server, from containers whose plan has a `Forward`.

The socket lies in a folder of its own in the home, which only the home's owner can enter; containers mount the
folder. Requests must be signed as at the TCP port.
"""

from __future__ import annotations

import socket
from pathlib import Path

from windtunnel_local.service.ground import unix_socket

_OWNER_ONLY = 0o700


def api_socket(home: Path) -> Path:
    return home / "api" / "socket"


def listen_at(path: Path) -> socket.socket:
    """A Unix socket bound to ``path``. Replaces a socket that a killed server left there."""
    path.parent.mkdir(mode=_OWNER_ONLY, exist_ok=True)
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        unix_socket.named(path, bound.bind)
    except BaseException:
        bound.close()
        raise
    return bound
