"""The folder through which the backend gives orders and the keeper answers: small JSON files.

    order.json     what to run: id, command, environment          (written by the backend)
    kill.json      the id of an order to be ended with SIGKILL    (backend)
    clean.json     the id of a request to make ready for another job    (backend)
    until.json     when an idle keeper is to end: Unix seconds    (backend)
    started.json   the order's process runs                       (keeper)
    ended.json     the order's process has ended, and how         (keeper)
    cleaned.json   the answer to clean.json                       (keeper)

A file appears whole or not at all, and is on the disk when a call that wrote it returns.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ORDER = "order.json"
KILL = "kill.json"
CLEAN = "clean.json"
UNTIL = "until.json"
STARTED = "started.json"
ENDED = "ended.json"
CLEANED = "cleaned.json"


@dataclass(frozen=True)
class Order:
    """One job's process. ``environment`` is added to the keeper's own."""

    id: str
    command: tuple[str, ...]
    environment: dict[str, str]


class Folder:
    """The folder, as the keeper sees it."""

    def __init__(self, path: Path) -> None:
        """``path`` exists."""
        self._path = path

    def order(self) -> Order | None:
        """What to run, or None."""
        found = self._read(ORDER)
        try:
            command = tuple(str(word) for word in found["command"])
            environment = {str(name): str(value) for name, value in found["environment"].items()}
            return Order(str(found["id"]), command, environment) if command else None
        except (KeyError, TypeError, AttributeError):
            return None

    def has(self, name: str, order: str) -> bool:
        """Whether there is a file ``name`` about this order."""
        return self._read(name).get("id") == order

    def clean(self) -> str | None:
        """The id of a request to clean up that was not answered yet."""
        identity = self._read(CLEAN).get("id")
        return identity if isinstance(identity, str) and not self.has(CLEANED, identity) else None

    def until(self) -> float | None:
        """When an idle keeper is to end, in Unix seconds."""
        found = self._read(UNTIL).get("unix_s")
        return float(found) if isinstance(found, int | float) else None

    def write(self, name: str, **content: Any) -> None:
        """Write a record; it is on the disk when this returns."""
        temporary = self._path / f".{name}.{os.getpid()}"
        with temporary.open("w") as file:
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path / name)
        descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        with contextlib.suppress(OSError):  # not every file system syncs a directory
            os.fsync(descriptor)
        os.close(descriptor)

    def _read(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads((self._path / name).read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}
