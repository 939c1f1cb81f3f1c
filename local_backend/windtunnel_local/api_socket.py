"""The Unix socket at which the code of a job reaches the server, from containers whose plan has a `Forward`.

It lies in a folder of its own in the home, which only its owner can enter; the folder is what containers see.
The same signatures are asked for as at the port.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

_OWNER_ONLY = 0o700


def api_socket(home: Path) -> Path:
    """Where it is."""
    return home / "api" / "socket"


def listen_at(path: Path) -> socket.socket:
    """A socket bound to ``path``, in the place of one that a killed server left."""
    path.parent.mkdir(mode=_OWNER_ONLY, exist_ok=True)
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(path.parent, os.O_PATH)
    try:
        bound.bind(
            f"/proc/self/fd/{folder}/{path.name}"
        )  # a socket's name has 107 bytes, a home may have more
    except BaseException:
        bound.close()
        raise
    finally:
        os.close(folder)
    return bound
