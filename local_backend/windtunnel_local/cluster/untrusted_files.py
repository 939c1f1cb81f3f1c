"""Read files in folders to which nodes write, whose users may become root there.

Links are not followed, nothing is waited for, and each read has a limit. A file that cannot be read counts as missing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path

_MOST_ENTRIES = 10_000
_MOST_OF_TEXT = 256 << 10


def folders_in(folder: Path) -> Iterator[os.DirEntry[str]]:
    """The names of the folders in a folder, in no order."""
    try:
        with os.scandir(folder) as entries:
            for entry in islice(entries, _MOST_ENTRIES):
                if entry.is_dir(follow_symlinks=False):
                    yield entry
    except OSError:
        return


def changed(path: str | Path) -> datetime | None:
    """When the file was last changed."""
    with suppress(OSError, ValueError, OverflowError):
        return datetime.fromtimestamp(os.lstat(path).st_mtime, timezone.utc)
    return None


def text_of(path: Path) -> str:
    """The beginning of the file; empty if there is none."""
    return _bytes(path, 0, _MOST_OF_TEXT).decode(errors="replace")


def tail_of(path: Path, most: int) -> tuple[str, bool]:
    """The last lines of the file, and whether these are all."""
    try:
        begin = max(0, os.lstat(path).st_size - most)
    except OSError:
        return "", True
    text = _bytes(path, begin, most).decode(errors="replace")
    return (text.partition("\n")[2], False) if begin else (text, True)


def _bytes(path: Path, begin: int, most: int) -> bytes:
    # Not blocking: a pipe that nobody writes would keep the reader for ever.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        return os.pread(descriptor, most, begin)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
