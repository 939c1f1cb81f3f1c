"""Room on the disk that is kept for the record: a script may fill the rest, and its end must be written down.

Without it a job that has taken the last byte would never end: that it has cannot be recorded, so what it
wrote is never removed, and no server of the home would start again.
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
            if shutil.disk_usage(self._path.parent).free < _LEFT_BYTES:
                return False
            with self._path.open("wb") as file:
                _allocate(file.fileno())
        except OSError:
            self.give()
            return False
        return True

    def give(self) -> bool:
        """Give the room back to the disk; whether there was any. Idempotent."""
        try:
            self._path.unlink()
        except OSError:
            return False
        return True


def _allocate(descriptor: int) -> None:
    with suppress(AttributeError):  # not on macOS
        os.posix_fallocate(descriptor, 0, _BYTES)
        return
    if os.write(descriptor, b"\0" * _BYTES) < _BYTES:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
