"""Atomic replacement of files in the home, and a lock for one writer at a time. Readers see the old or the new text."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where prices, calibration and AWS work without the local backend
    fcntl = None  # type: ignore[assignment]


def replace_whole(path: Path, text: str) -> None:
    """Replace a file: write a new one that only its owner may read, fsync, rename. On an error the old file stays.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on the file ``path`` against other processes; blocks until it is free. Windows: no lock.

    Raises:
        OSError: the folder cannot be written.
    """
    with path.open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
