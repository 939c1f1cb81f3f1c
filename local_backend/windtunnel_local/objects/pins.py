"""Folders that are being read: they are removed when the last reader has closed."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path


class Pins:
    """Counts readers by folder. Thread-safe; one process reads and removes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readers: dict[Path, int] = {}
        self._doomed: set[Path] = set()

    def pin(self, folder: Path) -> None:
        """Keep the folder from being removed. It may be gone already: look after pinning."""
        with self._lock:
            self._readers[folder] = self._readers.get(folder, 0) + 1

    def unpin(self, folder: Path) -> None:
        """One reader less."""
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
        """Remove the folder, now or after its last reader. ``grave``: a free name beside it, for a moment."""
        with self._lock:
            if folder in self._readers:
                self._doomed.add(folder)
                return
            try:
                folder.rename(grave)  # at once: who pins it from now on finds nothing, not a half
            except FileNotFoundError:
                return
        shutil.rmtree(grave, ignore_errors=True)

    @property
    def waiting(self) -> bool:
        """Whether folders wait for their readers."""
        return bool(self._doomed)
