"""Files of the home that are replaced as a whole, by one writer at a time: a reader sees the old text or the new."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: no local backend, but prices, calibration and AWS
    fcntl = None  # type: ignore[assignment]


def replace_whole(path: Path, text: str) -> None:
    """Replace the file by one for its owner only: write it, sync it to disk, rename it. On an error the old one stays.

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
    """Hold the lock file ``path`` alone, across processes; waits for another holder. On Windows nothing is held.

    Raises:
        OSError: the folder cannot be written.
    """
    with path.open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
