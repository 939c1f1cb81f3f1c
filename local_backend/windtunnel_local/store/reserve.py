"""Room on the disk that is kept for the record: a script may fill the rest, and its end must be written down.

Without it a job that has taken the last byte would never end: that it has cannot be recorded, so what it
wrote is never removed, and no server of the home would start again.

The room is in two places. The write-ahead log is kept longer than it is filled, and nobody else can take that. A
file beside the record keeps room while no server runs, as SQLite removes the log then; what it held goes into the log.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

_BYTES = 2 << 20
"""Some dozens of transactions."""
_LEFT_BYTES = 8 << 20
"""So much must be free besides: a nearly full disk is not made fuller."""
_LOG_BYTES = 6 << 20
"""SQLite writes 4 MiB of log before it begins anew; the rest is for a record that cannot grow meanwhile."""
_STEP_BYTES = 256 << 10


def reserve_path(record: Path) -> Path:
    """Where the room for a record is kept: there once the record is, unless the disk was full."""
    return record.with_name(record.name + "-reserve")


class Reserve:
    """A file that takes room until the record needs it. Safe from several threads."""

    def __init__(self, path: Path) -> None:
        """Nothing is taken yet."""
        self._path = path

    def take(self) -> bool:
        """Take the room, if the disk has plenty; whether it is taken. Idempotent."""
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
        """Give the room to the record's ``log``, which nobody writes now; whether there was any. Idempotent."""
        try:
            self._path.unlink()
        except OSError:
            return False
        with suppress(OSError), log.open("ab") as file:
            # In steps: a script that writes now may have taken some of it already.
            for _ in range(_BYTES // _STEP_BYTES):
                _allocate(file.fileno(), _STEP_BYTES)
        return True


def lengthen(log: Path) -> None:
    """Make a ``log`` that nobody writes now as long as it is kept, if the disk has plenty.

    By zeros, which no line of a log begins with: SQLite reads up to them, and writes over them.
    """
    with suppress(OSError):
        if _has_plenty(log):
            with log.open("ab") as file:
                _allocate(file.fileno(), max(0, _LOG_BYTES - file.tell()))


def _has_plenty(path: Path) -> bool:
    return shutil.disk_usage(path.parent).free >= _LEFT_BYTES


def _allocate(descriptor: int, size_bytes: int) -> None:
    """Lengthen an open file by real room."""
    if not size_bytes:
        return
    with suppress(AttributeError):  # not on macOS
        os.posix_fallocate(descriptor, os.lseek(descriptor, 0, os.SEEK_END), size_bytes)
        return
    if os.write(descriptor, b"\0" * size_bytes) < size_bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
