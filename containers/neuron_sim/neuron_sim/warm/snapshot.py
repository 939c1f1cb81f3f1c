"""Lists a container's own files before its first job, so that what jobs add can be removed.

Mounts are left out: their content is the backend's. All other files are compared by name and
by the time of the last change (ctime), which a job cannot set back.
"""

from __future__ import annotations

import os
import stat
import subprocess
import time
from pathlib import Path

_FOLDER = ord("d")
_TICK_S = 0.02
"""Longer than a tick of the kernel: the times of files are those of the last tick, up to 0.01 s ago."""


class Snapshot:
    """The files before any job has run."""

    def __init__(self, top: str = "/") -> None:
        """Start to list what is below ``top``, in the background."""
        self._top = top
        self._search = ("find", top, "-xdev")
        self._list = os.memfd_create("files")
        command = [*self._search, "-printf", "%y%p\\0"]
        self._find: subprocess.Popen[bytes] | None = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._list, stderr=subprocess.DEVNULL
        )
        self._since = 0.0
        self._kinds: dict[int, int] = {}
        self._entries: dict[int, int] = {}

    def complete(self) -> None:
        """Wait for the list to be complete: later changes count as a job's. Idempotent."""
        if self._find is not None:
            self._find.wait()
            self._find = None
            self._since = time.time()
            time.sleep(_TICK_S)

    def added(self) -> list[str]:
        """The paths that are new, without those inside of new folders."""
        self._read()
        new = {path for path in self._changed() if hash(path) not in self._kinds}
        return sorted(os.fsdecode(path) for path in new if _above(path) not in new)

    def damage(self) -> list[str]:
        """A text for each file that was changed or removed. Call when what was `added` is removed."""
        self._read()
        problems = []
        for path in self._changed():
            kind = self._kinds.get(hash(path))
            is_folder = stat.S_ISDIR(os.lstat(path).st_mode)
            if kind is None:
                problems.append(f"{os.fsdecode(path)} is still there")
            elif kind != _FOLDER or not is_folder:
                problems.append(f"{os.fsdecode(path)} was changed")
            elif len(list(Path(os.fsdecode(path)).iterdir())) < self._entries.get(hash(path), 0):
                problems.append(f"something in {os.fsdecode(path)} was removed")
        return problems

    def _changed(self) -> list[bytes]:
        """Paths of the container's own files that were changed since the list was complete."""
        command = [*self._search, "-newerct", f"@{self._since:.6f}", "-print0"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
        own = Path(self._top).stat().st_dev
        found = []
        for path in done.stdout.split(b"\0"):
            try:
                if path and os.lstat(path).st_dev == own:  # not of a mount point
                    found.append(path)
            except FileNotFoundError:
                continue
        return found

    def _read(self) -> None:
        """Take in the list: each path's kind, each folder's number of entries. By hash, since there are many."""
        if self._list < 0:
            return
        with open(self._list, "rb") as file:  # noqa: PTH123 - a descriptor
            file.seek(0)
            for entry in file.read().split(b"\0"):
                if entry:
                    path = entry[1:]
                    self._kinds[hash(path)] = entry[0]
                    above = hash(_above(path))
                    self._entries[above] = self._entries.get(above, 0) + (path != b"/")
        self._list = -1


def _above(path: bytes) -> bytes:
    return path.rpartition(b"/")[0] or b"/"
