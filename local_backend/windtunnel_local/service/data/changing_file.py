"""Reading a file that a running script may change, replace or swap for a link: whole, or not at all."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

from windtunnel_local.service.ground.job_paths import JobPaths

_OPEN_FILES = Path("/proc/self/fd")


class Changed(Exception):
    """The file is no longer what it was, or was never one of the job's own; or reading was called off."""


def fingerprint(path: Path) -> list[int]:
    """Changes whenever the file is written or replaced: size, time of modification in ns, inode."""
    return _stamp(path.stat())


class WholeFile:
    """Opens a file of a job's folder; its stream ends with `Changed` instead of its end if it changed."""

    def __init__(
        self, path: Path, folders: JobPaths, expected: list[int], abandon: Callable[[], bool]
    ) -> None:
        """``expected``: its `fingerprint`; ``abandon`` is asked before each block and ends the reading."""
        self._path = path
        self._folders = folders
        self._expected = expected
        self._abandon = abandon
        self._raw: _Guarded | None = None

    def __enter__(self) -> WholeFile:
        """Open it. Raises ``Changed``, ``OSError``."""
        # Not blocking: the script may have put a pipe in the file's place.
        descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            regular = stat.S_ISREG(status.st_mode) and _stamp(status) == self._expected
            # Where the open file really is: between a look and the opening, any folder may become a link.
            if not regular or (
                _OPEN_FILES.is_dir() and not self._folders.holds(_OPEN_FILES / str(descriptor))
            ):
                raise Changed(self._path)
            self._raw = _Guarded(descriptor, self._expected, self._abandon)
        except BaseException:
            os.close(descriptor)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        if self._raw is not None:
            self._raw.close()

    @property
    def stream(self) -> BinaryIO:
        """The content, once; reading raises ``Changed``."""
        return cast(BinaryIO, self._raw)


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
        if count == 0 and _stamp(os.fstat(self._descriptor)) != self._expected:
            raise Changed("written meanwhile")
        return count

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


def _stamp(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ino]
