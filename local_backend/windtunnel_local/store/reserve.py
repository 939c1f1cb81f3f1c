"""Disk space that is reserved for the record: even if a script fills the disk, the end of its job can be recorded.

Without the reserve such a job would never end: its end could not be recorded, so its files would never be
removed, and no server of the home would start again.

The space is in two places. The write-ahead log is kept longer than its content, and nobody else can take that. A
file beside the record holds space while no server runs, as SQLite removes the log then; the log gets it when needed.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

_BYTES = 2 << 20
"""Enough for some dozens of transactions."""
_LEFT_BYTES = 8 << 20
"""Space is reserved only if so much is free: a nearly full disk is not made fuller."""
_LOG_BYTES = 6 << 20
"""SQLite reuses the log from its start after 4 MiB; the rest serves while the record itself cannot grow."""
_STEP_BYTES = 256 << 10


def reserve_path(record: Path) -> Path:
    """The file that reserves space for a record. It exists if the record does, unless the disk was full."""
    return record.with_name(record.name + "-reserve")


class Reserve:
    """A file that takes up disk space until the record needs it. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Reserve nothing yet: `take` does."""
        self._path = path

    def take(self) -> bool:
        """Create the file, if enough of the disk is free; returns whether it exists. Idempotent."""
        if self._path.exists():
            return True
        try:
            if not _has_plenty(self._path):
                return False
            with self._path.open("wb") as file:
                _allocate(file.fileno(), _BYTES)
        except OSError:
            self._path.unlink(missing_ok=True)
            return False
        return True

    def give(self, log: Path) -> bool:
        """Give the file's space to the ``log``, while nobody writes it; returns whether there was any. Idempotent."""
        try:
            self._path.unlink()
        except OSError:
            return False
        with suppress(OSError), log.open("ab") as file:
            # In steps, because a script that writes at the same time may take some of the space.
            for _ in range(_BYTES // _STEP_BYTES):
                _allocate(file.fileno(), _STEP_BYTES)
        return True


def lengthen(log: Path) -> None:
    """Extend ``log`` to `_LOG_BYTES` while nobody writes it, if enough of the disk is free.

    It is filled with zeros. No entry of a log begins with zeros: SQLite reads up to them, and overwrites them.
    """
    with suppress(OSError):
        if _has_plenty(log):
            with log.open("ab") as file:
                _allocate(file.fileno(), max(0, _LOG_BYTES - file.tell()))


def _has_plenty(path: Path) -> bool:
    return shutil.disk_usage(path.parent).free >= _LEFT_BYTES


def _allocate(descriptor: int, size_bytes: int) -> None:
    """Extend an open file by so many bytes of allocated disk space."""
    if not size_bytes:
        return
    with suppress(AttributeError):  # not on macOS
        os.posix_fallocate(descriptor, os.lseek(descriptor, 0, os.SEEK_END), size_bytes)
        return
    if os.write(descriptor, b"\0" * size_bytes) < size_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
