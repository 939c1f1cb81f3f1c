"""A home directory's server: the lock that makes it the only one, and the note where it listens."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_OWNER_ONLY = 0o700
_TAKE_OVER_S = 30.0
_POLL_S = 0.05


class AlreadyRunning(Exception):
    """Another server holds the home and accepts requests; ``note`` is its backend.json."""

    def __init__(self, note: dict[str, Any]) -> None:
        super().__init__(
            f"A server of this home is running at {note.get('endpoint')} (pid {note.get('pid')})."
        )
        self.note = note


class Home:
    """The files of a home that tell servers and clients apart."""

    def __init__(self, path: Path) -> None:
        """Make the directory if it is not there; it is the owner's only from now on."""
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(_OWNER_ONLY)
        self.path = path
        self._note = path / "backend.json"

    @contextmanager
    def locked(self, patience_s: float = _TAKE_OVER_S) -> Iterator[None]:
        """Hold backend.lock. One that is starting or leaving is waited for.

        Raises:
            AlreadyRunning: the holder accepts requests.
            TimeoutError: it neither accepts nor leaves.
        """
        descriptor = os.open(self.path / "backend.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._take(descriptor, patience_s)
            self._note.unlink(missing_ok=True)  # a killed server's
            yield
        finally:
            os.close(descriptor)

    def _take(self, descriptor: int, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                note = self.read_note()
                if note is not None:
                    raise AlreadyRunning(note) from None
                if time.monotonic() > deadline:
                    raise TimeoutError(
                        f"Another server holds {self.path / 'backend.lock'} and does not accept requests. "
                        "See backend.log beside it; end that process, then start again."
                    ) from None
                time.sleep(_POLL_S)
            else:
                return

    def read_note(self) -> dict[str, Any] | None:
        """backend.json, or None."""
        try:
            note: dict[str, Any] = json.loads(self._note.read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return note

    def write_note(self, endpoint: str, version: str, runner: str) -> None:
        """Say where the server listens. Call once it accepts."""
        note = {
            "endpoint": endpoint,
            "pid": os.getpid(),
            "version": version,
            "runner": runner,
            "interpreter": sys.executable,
        }
        pending = self._note.with_suffix(".tmp")
        pending.write_text(json.dumps(note))
        pending.replace(self._note)

    def remove_note(self) -> None:
        """Say that nobody listens any more. Idempotent."""
        self._note.unlink(missing_ok=True)
