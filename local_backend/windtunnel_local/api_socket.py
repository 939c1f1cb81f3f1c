"""The Unix socket at which the code of a job reaches the server, from containers whose plan has a `Forward`.

It lies in a folder of its own in the home, which only its owner can enter; the folder is what containers see.
The same signatures are asked for as at the port.
"""

from __future__ import annotations

import socket
from pathlib import Path

from windtunnel_local.service.ground import unix_socket

_OWNER_ONLY = 0o700


def api_socket(home: Path) -> Path:
    """Where it is."""
    return home / "api" / "socket"


def listen_at(path: Path) -> socket.socket:
    """A socket bound to ``path``, in the place of one that a killed server left."""
    path.parent.mkdir(mode=_OWNER_ONLY, exist_ok=True)
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        unix_socket.named(path, bound.bind)
    except BaseException:
        bound.close()
        raise
    return bound
