"""Reading a file that a running script may change, replace or swap for a link: whole, or not at all."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

from windtunnel_local.service.data.untrusted_files import open_descriptor
from windtunnel_local.service.ground.job_paths import JobPaths


class Changed(Exception):
    """The file is no longer what it was, or was never one of the job's own; or reading was called off."""


def fingerprint(path: Path) -> list[int]:
    """Changes whenever the file is written or replaced: size, time of modification in ns, inode."""
    return _stamp(path.stat())


def open_whole(path: Path, folders: JobPaths, expected: list[int], abandon: Callable[[], bool]) -> BinaryIO:
    """A file of a job's folder, to be read once. If it has changed by its end, reading raises `Changed`.

    ``expected``: its `fingerprint`; ``abandon`` is asked before each block and ends the reading.

    Raises:
        Changed, OSError
    """
    raw = _Guarded(open_descriptor(path, folders), expected, abandon)
    if not raw.is_unchanged():
        raw.close()
        raise Changed(path)
    return cast(BinaryIO, raw)


class _Guarded(io.RawIOBase):
    """Has no `fileno`, so that nothing copies past the guard."""

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
