"""Opens files that a script may have written: never waits for a pipe, follows a link out, or trusts a size."""

from __future__ import annotations

import io
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from windtunnel_local.service.data.copying import Check, go_on
from windtunnel_local.service.ground.errors import NoRoom
from windtunnel_local.service.ground.job_paths import JobPaths

_MIB, _GIB = 1 << 20, 1 << 30
_OPEN_FILES = Path("/proc/self/fd")


class Watched(io.BufferedReader):
    """A file whose reading can be abandoned: ``check`` is called before each read, and raises to abandon."""

    def __init__(self, file: io.RawIOBase, check: Check) -> None:
        super().__init__(file)
        self._check = check

    def read(self, size: int | None = -1, /) -> bytes:
        self._check()
        return super().read(size)


def open_regular(path: Path, folders: JobPaths, check: Check = go_on) -> BinaryIO:
    """Open a regular file in the job's folder for reading. Never blocks. ``check``: see `Watched`.

    Raises:
        OSError: the file does not exist, is outside of the folder, or is a pipe, device or folder.
    """
    return Watched(io.FileIO(open_descriptor(path, folders)), check)


def open_descriptor(path: Path, folders: JobPaths) -> int:
    """Like `open_regular`, but return a file descriptor."""
    if not folders.holds(path):
        raise FileNotFoundError(f"{path} leads out of the job's folder")
    # Non-blocking, because the script may have replaced the file by a pipe.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # Check again with the open file: since the first check, the script may have swapped it or a folder above it.
        inside = not _OPEN_FILES.is_dir() or folders.holds(_OPEN_FILES / str(descriptor))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or not inside:
            raise FileNotFoundError(f"{path} is no file of the job's own")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def require_room(paths: Iterable[Path], folders: JobPaths, *, packed: bool = False) -> None:
    """Check that the disk has room for the files to store: a script can make a huge sparse file at no cost.

    Args:
        paths: the files to store.
        folders: the job's folders, which are on the same disk.
        packed: whether they go into an archive, which does not contain their holes.

    Raises:
        NoRoom: names the largest file, its size, and the free space.
    """
    sizes: dict[Path, int] = {}
    for path in paths:
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            sizes[path] = min(status.st_size, 512 * status.st_blocks) if packed else status.st_size
    free = shutil.disk_usage(folders.root).free
    if sum(sizes.values()) <= free:
        return
    largest = max(sizes, key=sizes.__getitem__)
    raise NoRoom(
        f"{largest.name} says that it has {_size(sizes[largest])}, but only {_size(free)} are"
        " free on the disk of WINDTUNNEL_HOME. Write less, free some, or set WINDTUNNEL_HOME to a directory on a"
        " larger disk."
    )


def _size(count: int) -> str:
    return f"{count / _GIB:,.0f} GiB" if count >= _GIB else f"{count / _MIB:,.1f} MiB"
