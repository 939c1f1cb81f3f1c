"""Unix sockets at paths longer than the limit for a socket's name: 107 bytes on Linux, 103 on macOS."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

_LONGEST_NAME = 103


def named(path: Path, use: Callable[[str], object]) -> None:
    """Call ``use`` (a socket's bind or connect) with a name for ``path`` that is short enough.

    Raises:
        OSError: ``use`` raised it, also because the path is too long on a system without /proc.
    """
    if len(os.fsencode(path)) <= _LONGEST_NAME or not hasattr(os, "O_PATH"):
        use(str(path))
        return
    folder = os.open(path.parent, os.O_PATH)
    try:
        use(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
