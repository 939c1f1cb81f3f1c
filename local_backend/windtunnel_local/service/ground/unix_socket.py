"""Unix sockets whose path may be longer than a socket's name: 107 bytes on Linux, 103 on macOS."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

_LONGEST_NAME = 103


def named(path: Path, use: Callable[[str], object]) -> None:
    """Bind or connect with ``path``: ``use`` gets a name for it that is short enough.

    Raises:
        OSError: ``use`` did, or the path is too long on a system that knows no other name for a folder.
    """
    if len(os.fsencode(path)) <= _LONGEST_NAME or not hasattr(os, "O_PATH"):
        use(str(path))
        return
    folder = os.open(path.parent, os.O_PATH)
    try:
        use(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
