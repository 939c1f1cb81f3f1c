"""The folder through which a kept container gets its orders: the backend's side of it.

The other side is `neuron_sim.warm.orders` in the image, and says what the files are. A job
can write to this folder, as it runs as the same user: nothing here follows a link, waits for
a pipe, or believes more of a file than that it is a small JSON object.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_LARGEST = 1 << 20
_UNTIL = "until.json"


class Orders:
    """One container's folder, on this machine. Everything is on the disk when a call returns."""

    def __init__(self, path: Path) -> None:
        """``path`` may not exist: there is no order then."""
        self._path = path

    def current(self) -> str | None:
        """The id of the order that the container has, done or not."""
        found = self._read("order.json").get("id")
        return found if isinstance(found, str) and found else None

    def give(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Order a process, unless there is an order already. Idempotent."""
        if self.current() is None:
            self._write(
                "order.json",
                {"id": uuid.uuid4().hex, "command": list(command), "environment": dict(environment)},
            )

    def started(self) -> dict[str, Any] | None:
        """The keeper's record that the current order's process was started."""
        return self._about_current("started.json")

    def ended(self) -> dict[str, Any] | None:
        """The keeper's record of how the current order's process ended."""
        return self._about_current("ended.json")

    def kill(self) -> None:
        """Have the current order's process ended with SIGKILL."""
        self._write("kill.json", {"id": self.current()})

    def clean(self) -> str:
        """Ask for a clean-up; returns what `cleaned` takes."""
        identity = uuid.uuid4().hex
        self._write("clean.json", {"id": identity})
        return identity

    def cleaned(self, identity: str) -> list[str] | None:
        """What could not be cleaned up; None: no answer yet."""
        found = self._read("cleaned.json")
        problems = found.get("problems")
        if found.get("id") != identity or not isinstance(problems, list):
            return None
        return [str(problem) for problem in problems]

    def keep_until(self, unix_s: float) -> None:
        """Say when the idle container is to end by itself, if nobody has ended it by then."""
        self._write(_UNTIL, {"unix_s": unix_s})

    def withdraw(self) -> None:
        """Forget the order that is done, and what was said of it. Idempotent."""
        # The order first: a keeper that sees it without its end would take it for a new one.
        for name in ("order.json", "started.json", "kill.json", "clean.json", "cleaned.json", "ended.json"):
            with contextlib.suppress(FileNotFoundError):
                (self._path / name).unlink()
        self._sync()

    def _about_current(self, name: str) -> dict[str, Any] | None:
        found = self._read(name)
        return found if found and found.get("id") == self.current() else None

    def _read(self, name: str) -> dict[str, Any]:
        try:
            descriptor = os.open(
                self._path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            )
            with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, for its flags
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    return {}
                found = json.loads(file.read(_LARGEST))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, name: str, content: Mapping[str, Any]) -> None:
        temporary = self._path / f".{uuid.uuid4().hex}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(temporary, flags, 0o600), "w") as file:  # noqa: PTH123 - as above
            json.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path / name)
        self._sync()

    def _sync(self) -> None:
        with contextlib.suppress(OSError):
            descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
