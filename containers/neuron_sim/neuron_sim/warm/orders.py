"""The folder through which the backend gives orders and the keeper answers: small JSON files.

    order.json     what to run: id, command, environment          (written by the backend)
    kill.json      the id of an order to be ended with SIGKILL    (backend)
    clean.json     the id of a request to make ready for another job    (backend)
    until.json     when an idle keeper is to end: Unix seconds    (backend)
    started.json   the order's process runs                       (keeper)
    ended.json     the order's process has ended, and how         (keeper)
    cleaned.json   the answer to clean.json                       (keeper)

Files are written atomically, and are on the disk when the call that wrote them returns.

Jobs can write to the folder, too: they run as the same user. So every file is
``{"record": <JSON as text>, "seal": ...}`` with a seal, an HMAC of its name and record, that only the
backend and the keeper can make. The backend leaves the key for it in the folder before the container
starts; the keeper removes the key before any job runs, and jobs cannot read the keeper's memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import stat
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
KEY = "key"

_LARGEST = 16 << 20


@dataclass(frozen=True)
class Order:
    """One job's process. ``environment`` is added to the keeper's own."""

    id: str
    command: tuple[str, ...]
    environment: dict[str, str]


class Folder:
    """The folder, as the keeper sees it."""

    def __init__(self, path: Path) -> None:
        """Read and remove the key in ``path``. Raises ``OSError`` if there is none: no file could be trusted."""
        self._path = path
        key = path / KEY
        self._key = bytes.fromhex(key.read_text())
        key.unlink()

    def order(self) -> Order | None:
        """The order to run, or None."""
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
        """The id of a request to clean up that waits for an answer, or None."""
        identity = self._read(CLEAN).get("id")
        return identity if isinstance(identity, str) and not self.has(CLEANED, identity) else None

    def until(self) -> float | None:
        """When an idle keeper is to end, in Unix seconds; None: not known."""
        found = self._read(UNTIL).get("unix_s")
        return float(found) if isinstance(found, int | float) else None

    def write(self, name: str, **content: Any) -> None:
        """Write a record; it is on the disk when this returns."""
        record = json.dumps(content)
        temporary = self._path / f".{name}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        with temporary.open("x") as file:
            json.dump({"record": record, "seal": self._seal(name, record)}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path / name)
        descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        with contextlib.suppress(OSError):  # not every file system syncs a directory
            os.fsync(descriptor)
        os.close(descriptor)

    def mark(self, order: str) -> str:
        """The mark that ends an order's output; a job cannot know it before."""
        return self._seal("end", order)[:32]

    def _seal(self, name: str, record: str) -> str:
        return hmac.new(self._key, f"{name}\n{record}".encode(), hashlib.sha256).hexdigest()

    def _read(self, name: str) -> dict[str, Any]:
        """Read a record; empty if it is missing or has no valid seal. Waits for no pipe, and follows no link."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with open(os.open(self._path / name, flags), "rb") as file:  # noqa: PTH123 - a descriptor, for its flags
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return {}
                found = json.loads(file.read(_LARGEST))
            record = found["record"]
            if not hmac.compare_digest(self._seal(name, record), found["seal"]):
                return {}
            content = json.loads(record)
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return content if isinstance(content, dict) else {}
