"""The home directory: its lock, which one server holds, and backend.json, which tells clients its address."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from windtunnel_local.service.ground.errors import WindtunnelError

log = logging.getLogger("windtunnel.server")

_OWNER_ONLY = 0o700
_FILES_OWNER_ONLY = 0o600
_TAKE_OVER_S = 30.0
_POLL_S = 0.05


class HomeError(WindtunnelError):
    """The directory cannot be a home; the message says why and what to do."""


class AlreadyRunning(Exception):
    """Another server holds the home and accepts requests; ``note`` is its backend.json."""

    def __init__(self, note: dict[str, Any]) -> None:
        super().__init__(
            f"A server of this home is running at {note.get('endpoint')} (pid {note.get('pid')})."
        )
        self.note = note


class Home:
    """A home directory, with the server's lock (backend.lock) and address (backend.json)."""

    def __init__(self, path: Path) -> None:
        """Create the directory if it is missing; take all permissions on it and its files from other users.

        Raises:
            HomeError: the path is not UTF-8, or the directory is another user's, who could read keys and change jobs.
        """
        if os.fsencode(path) != str(path).encode("utf-8", "replace"):  # Docker and SQLite get it as UTF-8
            raise HomeError(
                f"{os.fsencode(path)!r} is no UTF-8, or this shell's LC_ALL, LC_CTYPE or LANG is of another encoding: "
                "Docker and SQLite would not find it. Set WINDTUNNEL_HOME to a directory with a plain name, or "
                "LC_ALL=C.UTF-8."
            )
        path.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
        status = path.stat()
        if status.st_uid != os.geteuid():
            raise HomeError(
                f"{path} belongs to another user (uid {status.st_uid}; you are {os.geteuid()}): its owner could "
                "read the keys and change the jobs. Set WINDTUNNEL_HOME to a directory of your own."
            )
        loose = stat.S_IMODE(status.st_mode) & ~_OWNER_ONLY
        path.chmod(_OWNER_ONLY)
        if loose:
            log.warning(
                "%s was open to other users (mode %o); it is yours only now. If one of them may have read "
                "credentials.json, remove it: the next start makes a new key pair.",
                path,
                stat.S_IMODE(status.st_mode),
            )
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):  # a server that exits now removes some
                        Path(entry.path).chmod(_FILES_OWNER_ONLY)
        self.path = path
        self._note = path / "backend.json"

    @contextmanager
    def locked(self, patience_s: float = _TAKE_OVER_S) -> Iterator[None]:
        """Hold backend.lock. Waits up to ``patience_s`` seconds for a server that is starting or exiting.

        Raises:
            AlreadyRunning: another server holds the lock and accepts requests.
            TimeoutError: another server holds the lock, and in that time it neither accepts requests nor exits.
        """
        descriptor = os.open(self.path / "backend.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._take(descriptor, patience_s)
            self._note.unlink(missing_ok=True)  # of a server that was killed
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
        """The content of backend.json; None if the file is missing or damaged."""
        try:
            note = json.loads(self._note.read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return note if isinstance(note, dict) else None

    def write_note(self, endpoint: str, version: str, runner: str) -> None:
        """Write backend.json with the server's address. Call when the server accepts connections."""
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

    def kept(self) -> bool:
        """Whether the server must stay when idle: `windtunnel env` writes the file `keep` for that.

        The file holds the boot's id: after a reboot no shell is left that was told of the server.
        """
        try:
            return (self.path / "keep").read_text().strip() == _boot()
        except (OSError, ValueError):
            return False

    def remove_note(self) -> None:
        """Remove backend.json: the server no longer listens. Idempotent."""
        self._note.unlink(missing_ok=True)


def _boot() -> str:
    """The id that Linux gives to each boot of the machine; empty on other systems."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
