"""Reads a file that a running script may change or replace meanwhile: either one whole version of it, or nothing."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

from windtunnel_local.service.data.untrusted_files import open_descriptor
from windtunnel_local.service.ground.job_paths import JobPaths


class Changed(Exception):
    """The file has changed or was replaced since its fingerprint was taken, or reading was abandoned."""


def fingerprint(path: Path) -> list[int]:
    """Size, modification time in ns and inode of a file: they change when it is written or replaced."""
    return _stamp(path.stat())


def open_whole(path: Path, folders: JobPaths, expected: list[int], abandon: Callable[[], bool]) -> BinaryIO:
    """Open a file of a job's folder, to be read once. If the file changes meanwhile, reading its end raises `Changed`.

    ``expected``: its `fingerprint`; ``abandon`` is called before each block, and ends the reading if it is true.

    Raises:
        Changed: the file's fingerprint differs already.
        OSError: the file cannot be opened, or is not a regular file of the job's folder.
    """
    raw = _Guarded(open_descriptor(path, folders), expected, abandon)
    if not raw.is_unchanged():
        raw.close()
        raise Changed(path)
    return cast(BinaryIO, raw)


class _Guarded(io.RawIOBase):
    """A raw file that checks its fingerprint at its end. Has no `fileno`, by which a copy could bypass the check."""

    def __init__(self, descriptor: int, expected: list[int], abandon: Callable[[], bool]) -> None:
        self._descriptor = descriptor
        self._expected = expected
        self._abandon = abandon

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        if self._abandon():
            raise Changed("called off")
        count = os.readv(self._descriptor, [buffer])
        if count == 0 and not self.is_unchanged():
            raise Changed("written meanwhile")
        return count

    def is_unchanged(self) -> bool:
        return _stamp(os.fstat(self._descriptor)) == self._expected

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


def _stamp(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ino]
