"""An engine and a server on it, both of a test's own, which may be killed."""

from __future__ import annotations

import random
import shutil
import tempfile
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from tests.faults.backend import Backend
from tests.faults.engine import PrivateEngine

_Stage = TypeVar("_Stage", bound="Stage")
KINDS = ("server", "container", "engine", "engine with live-restore")


@dataclass
class Stage(AbstractContextManager["Stage"]):
    """`__exit__` leaves nothing of both, or says what."""

    rng: random.Random
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="windtunnel-faults-")))

    def __post_init__(self) -> None:
        """Bring what there is into service."""
        self._stack = ExitStack()
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            self.engine = PrivateEngine(live_restore=True)
            self._stack.callback(self.engine.close)
            self.engine.start()
            self.engine.load_base()
            self.backend = Backend(self.folder / "home", self.engine)
            self._stack.callback(self.backend.stop)
            self._prepare()
        except BaseException:
            self._stack.close()
            raise

    def _prepare(self) -> None:
        """Make the image, start the server, and make there what the test needs."""
        raise NotImplementedError

    def __enter__(self: _Stage) -> _Stage:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End both, and remove their folders."""
        self._stack.close()
