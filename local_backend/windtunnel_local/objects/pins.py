"""Folders that are being read, which are removed only after their last reader."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path


class Pins:
    """Counts the readers of each folder. Thread-safe, for one process that reads and removes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: dict[Path, int] = {}
        self._doomed: set[Path] = set()

    def pin(self, folder: Path) -> None:
        """Count a reader: the folder is not removed now. It may be gone already, so look after the call."""
        with self._lock:
            self._readers[folder] = self._readers.get(folder, 0) + 1

    def unpin(self, folder: Path) -> None:
        """Count one reader less; after the last, remove the folder if `remove` was called."""
        with self._lock:
            self._readers[folder] -= 1
            if self._readers[folder]:
                return
            del self._readers[folder]
            doomed = folder in self._doomed
            self._doomed.discard(folder)
        if doomed:
            shutil.rmtree(folder, ignore_errors=True)

    def remove(self, folder: Path, grave: Path) -> None:
        """Remove the folder, now or after its last reader. ``grave``: a free path on the same disk, used meanwhile."""
        with self._lock:
            if folder in self._readers:
                self._doomed.add(folder)
                return
            try:
                folder.rename(grave)  # atomic: a later reader finds no folder, never half of one
            except FileNotFoundError:
                return
        shutil.rmtree(grave, ignore_errors=True)

    @property
    def waiting(self) -> bool:
        """Whether folders wait for their last reader, to be removed."""
        return bool(self._doomed)
