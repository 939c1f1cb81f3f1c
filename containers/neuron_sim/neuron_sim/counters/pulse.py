"""Looks at what has run where a script calls nothing of ours for long, and lets it be told.

A text that is generated token by token compiles for minutes and ends no step. Python runs a pending call between two
instructions of the main thread, as it runs a signal's handler: a thread that only sleeps asks for one.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

EVERY_S = 10.0

_CALL = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Pulse:
    """Calls a function in the main thread, as long as it lives there, and another one in a thread of its own."""

    def __init__(self, look: Callable[[], None], tell: Callable[[], None]) -> None:
        """Neither raises anything. ``tell`` is called also while the main thread is deep in torch_xla."""
        self._look, self._tell = look, tell
        self._call = _CALL(self._in_main_thread)
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="windtunnel-pulse", daemon=True).start()

    def end(self) -> None:
        """No more. Idempotent."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            ctypes.pythonapi.Py_AddPendingCall(self._call, None)
            self._tell()

    def _in_main_thread(self, _: int | None) -> int:
        if not self._ended.is_set():
            self._look()
        return 0
