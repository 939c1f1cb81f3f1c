"""A thread for each endpoint and transform job, which brings it to the state that its record asks for."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

from windtunnel_local.service.ground.errors import ResourceNotFound, RunnerError, StoreUnavailable
from windtunnel_local.service.ground.ports import Ports

_log = logging.getLogger(__name__)

_LEAVE_PATIENCE_S = 5.0


class RecordThread(ABC):
    """Calls `_step` again and again, until there is nothing left to do for the record."""

    def __init__(self, what: str, ports: Ports) -> None:
        """``what``: kind and name of the record, for messages. `begin` starts the thread."""
        self.gone = threading.Event()
        """Set when there is nothing more to do for this record."""
        self._what = what
        self._ports = ports
        self._woken = threading.Event()
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._run, name=what, daemon=True)

    def begin(self) -> None:
        """Start the thread, which goes on from the record's state. Call once."""
        self._thread.start()

    def wake(self) -> None:
        """Make the thread read the record now, because it has changed."""
        self._woken.set()

    def leave(self) -> None:
        """Make the thread end; containers run on. Does not block."""
        self._leaving.set()
        self._woken.set()

    def join(self) -> None:
        """Wait for the thread, some seconds at most."""
        self._thread.join(_LEAVE_PATIENCE_S)

    @abstractmethod
    def _step(self) -> bool:
        """Read the record once and act on it; return whether nothing is left to do."""

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
            except Exception as error:  # noqa: BLE001 - without its thread, the job or endpoint would never end
                if self._leaving.is_set():  # at shutdown the store may be closed already
                    return
                _log.warning("The %s waits", self._what, exc_info=error)
                self._leaving.wait(self._ports.config.pace.retry_s)
            self._woken.wait(self._ports.config.pace.tick_s)
            self._woken.clear()


_Thread = TypeVar("_Thread", bound=RecordThread)


class RecordThreads(Generic[_Thread]):
    """The threads of all records of one kind, by name. Thread-safe."""

    def __init__(self, make: Callable[[str], _Thread]) -> None:
        """``make`` creates and starts the thread of a record."""
        self._make = make
        self._lock = threading.Lock()
        self._threads: dict[str, _Thread] = {}
        self._left = False

    def look(self, name: str) -> None:
        """Wake the record's thread; start one if there is none. Does nothing after `shutdown`."""
        with self._lock:
            if self._left:
                return
            self._threads = {known: one for known, one in self._threads.items() if not one.gone.is_set()}
            if name in self._threads:
                self._threads[name].wake()
            else:
                self._threads[name] = self._make(name)

    def get(self, name: str) -> _Thread | None:
        """The record's thread; None if it has none, or nothing more to do."""
        with self._lock:
            found = self._threads.get(name)
        return None if found is None or found.gone.is_set() else found

    def all(self) -> list[_Thread]:
        """The threads that still have something to do."""
        with self._lock:
            return [one for one in self._threads.values() if not one.gone.is_set()]

    def shutdown(self) -> None:
        """End all threads, within seconds; containers run on. Idempotent."""
        with self._lock:
            self._left = True
            threads = list(self._threads.values())
        for one in threads:
            one.leave()
        for one in threads:
            one.join()
