"""A thread that makes something what its record wants it to be."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod

from windtunnel_local.service.ground.errors import ResourceNotFound, RunnerError, StoreUnavailable
from windtunnel_local.service.ground.ports import Ports

_log = logging.getLogger(__name__)

_LEAVE_PATIENCE_S = 5.0


class RecordThread(ABC):
    """Looks at the record again and again, until there is nothing left to do."""

    def __init__(self, what: str, ports: Ports) -> None:
        """``what``: it is, for messages. `begin` starts it."""
        self.gone = threading.Event()
        """Set when there is nothing more to do for this record."""
        self._what = what
        self._ports = ports
        self._woken = threading.Event()
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name=what, daemon=True)

    def begin(self) -> None:
        """Run, from wherever the record stands. Call once."""
        self._thread.start()

    def wake(self) -> None:
        """Look at the record now: it has changed."""
        self._woken.set()

    def leave(self) -> None:
        """Let go; containers run on. Does not block."""
        self._leaving.set()
        self._woken.set()

    def join(self) -> None:
        """Wait for the thread, some seconds at most."""
        self._thread.join(_LEAVE_PATIENCE_S)

    @abstractmethod
    def _step(self) -> bool:
        """One look at the record; whether it was the last."""

    def _run(self) -> None:
        while not self._leaving.is_set():
            try:
                if self._step():
                    return
            except ResourceNotFound:
                self.gone.set()
                return
            except (RunnerError, StoreUnavailable) as error:
                _log.warning("The %s waits: %s", self._what, error)
                self._leaving.wait(self._ports.config.pace.retry_s)
            except Exception as error:  # noqa: BLE001 - what has no thread any more would never end
                if self._leaving.is_set():  # a store that is closed while leaving is no news
                    return
                _log.warning("The %s waits", self._what, exc_info=error)
                self._leaving.wait(self._ports.config.pace.retry_s)
            self._woken.wait(self._ports.config.pace.tick_s)
            self._woken.clear()
