"""Opening files that a script could write: without waiting for a pipe, following a link or believing a size."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from windtunnel_local.service.ground.errors import NoRoom
from windtunnel_local.service.ground.job_paths import JobPaths

_GIB = 1 << 30
_MOST_HOLES_BYTES = 16 * _GIB
"""So much of files that are not written yet is packed nevertheless: half a minute of zeros."""
_OPEN_FILES = Path("/proc/self/fd")


def open_regular(path: Path, folders: JobPaths) -> BinaryIO:
    """Open a regular file of the job's own folder for reading. Never blocks.

    Raises:
        OSError: there is none, it leads out of the folder, or it is a pipe, device or folder.
    """
    return os.fdopen(open_descriptor(path, folders), "rb")


def open_descriptor(path: Path, folders: JobPaths) -> int:
    """`open_regular`, as a file descriptor."""
    if not folders.holds(path):
        raise FileNotFoundError(f"{path} leads out of the job's folder")
    # Not blocking: a pipe may stand in the file's place.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # Again, of the file that is open now: the script may have swapped it, or a folder above it, since.
        inside = not _OPEN_FILES.is_dir() or folders.holds(_OPEN_FILES / str(descriptor))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or not inside:
            raise FileNotFoundError(f"{path} is no file of the job's own")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def require_room(paths: Iterable[Path], folders: JobPaths, *, packed: bool = False) -> None:
    """Refuse to store files that would fill the disk; a sparse file costs a script nothing.

    Args:
        paths: what is about to be stored.
        folders: of the job, on the disk in question.
        packed: whether it becomes an archive, whose size nobody knows before: then only files are
            refused that are mostly not there.

    Raises:
        NoRoom: names the largest, what it claims, and what is free.
    """
    sizes: dict[Path, tuple[int, int]] = {}
    for path in paths:
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            sizes[path] = (status.st_size, max(0, status.st_size - 512 * status.st_blocks))
    claimed = sum(size for size, _ in sizes.values())
    holes = sum(hole for _, hole in sizes.values())
    free = shutil.disk_usage(folders.root).free
    if claimed <= free or (packed and holes <= _MOST_HOLES_BYTES):
        return
    largest = max(sizes, key=lambda path: sizes[path][0])
    raise NoRoom(
        f"{largest.name} says that it has {sizes[largest][0] / _GIB:,.0f} GiB, but only {free / _GIB:,.0f} GiB are"
        " free on the disk of WINDTUNNEL_HOME. Write less, free some, or set WINDTUNNEL_HOME to a directory on a"
        " larger disk."
    )
