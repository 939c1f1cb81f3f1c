"""The backend's side of the folder through which a kept container gets its orders.

The other side, `neuron_sim.warm.orders` in the image, documents the files. A job runs as the
same user and can write to this folder. So nothing here follows a link or waits for a pipe, a
record counts only with the keeper's seal, and the current order's id is stored elsewhere. A job
cannot fake its own end or a clean container, and cannot live on beside the next job.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import stat
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_LARGEST = 1 << 20
_UNTIL = "until.json"
_KEY = "key"
_STATE = "state.json"


class Orders:
    """The folder of one container. When a call returns, its files are on the disk."""

    def __init__(self, path: Path) -> None:
        """If ``path`` does not exist, there is no order. Files that jobs may not see are beside it, not in it."""
        self._path = path
        self._private = path.with_name(f"{path.name}-private")

    def prepare(self) -> None:
        """Create the key, and write it where the keeper finds it. Call before the container starts. Idempotent."""
        if self._key() is None:
            key = secrets.token_hex(32)
            _write(self._path, _KEY, key)  # first: with a state, nobody would leave it any more
            self._save(key, None)

    def current(self) -> str | None:
        """The id of the container's order, done or not; None: it has none."""
        found = self._state().get("current")
        return found if isinstance(found, str) and found else None

    def give(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Order a process, unless there is an order already. Idempotent."""
        identity = self.current()
        if identity is None:
            identity = uuid.uuid4().hex
            with contextlib.suppress(FileNotFoundError):
                (self._path / _UNTIL).unlink()  # of the time before this order
            self._save(self._key(), identity)
        begun = self.started() is not None or self.ended() is not None
        if not begun and self._read("order.json").get("id") != identity:
            order = {"id": identity, "command": list(command), "environment": dict(environment)}
            self._tell("order.json", order)

    def mark(self, order: str) -> str:
        """The line that ends an order's output. Only the keeper can make it."""
        return self._seal("end", order)[:32]

    def started(self) -> dict[str, Any] | None:
        """The keeper's record that the current order's process was started."""
        return self._about_current("started.json")

    def ended(self) -> dict[str, Any] | None:
        """The keeper's record of how the current order's process ended."""
        return self._about_current("ended.json")

    def kill(self) -> None:
        """Ask the keeper to end the current order's process with SIGKILL."""
        self._tell("kill.json", {"id": self.current()})

    def clean(self) -> str:
        """Ask for a clean-up; returns what `cleaned` takes."""
        identity = uuid.uuid4().hex
        self._tell("clean.json", {"id": identity})
        return identity

    def cleaned(self, identity: str) -> list[str] | None:
        """The keeper's answer to `clean`: what could not be cleaned up; None: no answer yet."""
        found = self._read("cleaned.json")
        problems = found.get("problems")
        if found.get("id") != identity or not isinstance(problems, list):
            return None
        return [str(problem) for problem in problems]

    def keep_until(self, unix_s: float) -> None:
        """Set the time at which the idle container ends by itself."""
        self._tell(_UNTIL, {"unix_s": unix_s})

    def withdraw(self) -> None:
        """Remove the order that is done, and its records. Idempotent."""
        if self.current() is not None:
            self._save(self._key(), None)
        for name in ("order.json", "started.json", "kill.json", "clean.json", "cleaned.json", "ended.json"):
            with contextlib.suppress(FileNotFoundError):
                (self._path / name).unlink()
        _sync(self._path)

    def _about_current(self, name: str) -> dict[str, Any] | None:
        found = self._read(name)
        return found if found and found.get("id") == self.current() else None

    def _read(self, name: str) -> dict[str, Any]:
        """The content of a sealed record; of any other, nothing."""
        found = _object_in(self._path / name)
        record, seal = found.get("record"), found.get("seal")
        if not isinstance(record, str) or not isinstance(seal, str):
            return {}
        if not hmac.compare_digest(self._seal(name, record).encode(), seal.encode("utf-8", "replace")):
            return {}
        content = json.loads(record)
        return content if isinstance(content, dict) else {}

    def _tell(self, name: str, content: Mapping[str, Any]) -> None:
        record = json.dumps(content)
        sealed = json.dumps({"record": record, "seal": self._seal(name, record)})
        _write(self._path, name, sealed)

    def _seal(self, name: str, record: str) -> str:
        key = bytes.fromhex(self._key() or secrets.token_hex(32))  # without one, nothing can be right
        return hmac.new(key, f"{name}\n{record}".encode(), hashlib.sha256).hexdigest()

    def _key(self) -> str | None:
        found = self._state().get("key")
        return found if isinstance(found, str) and found else None

    def _state(self) -> dict[str, Any]:
        return _object_in(self._private / _STATE)

    def _save(self, key: str | None, current: str | None) -> None:
        self._private.mkdir(mode=0o700, exist_ok=True)
        _write(self._private, _STATE, json.dumps({"key": key, "current": current}))


def _write(folder: Path, name: str, text: str) -> None:
    temporary = folder / f".{uuid.uuid4().hex}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(temporary, flags, 0o600), "w") as file:  # noqa: PTH123 - a descriptor, for its flags
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / name)
    _sync(folder)


def _sync(folder: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _object_in(path: Path) -> dict[str, Any]:
    """A small file's JSON object; of any other file, an empty one."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with open(os.open(path, flags), "rb") as file:  # noqa: PTH123 - a descriptor, for its flags
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return {}
            found = json.loads(file.read(_LARGEST))
    except (OSError, RecursionError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
