"""Looks regularly at what has run, also while a script calls none of our functions for long, and tells listeners.

Generating a text token by token compiles for minutes and ends no step. So a thread that otherwise sleeps asks Python
for a pending call, which runs in the main thread between two instructions, like a signal's handler.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

EVERY_S = 10.0

_CALL = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Pulse:
    """Calls ``look`` in the main thread, when Python code runs there, and ``tell`` in a thread of its own."""

    def __init__(self, look: Callable[[], None], tell: Callable[[], None]) -> None:
        """Neither may raise. ``tell`` is also called while the main thread is inside torch_xla."""
        self._look, self._tell = look, tell
        self._call = _CALL(self._in_main_thread)
        self._ended = threading.Event()
        threading.Thread(target=self._run, name="windtunnel-pulse", daemon=True).start()

    def end(self) -> None:
        """Stop the calls. Idempotent."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            ctypes.pythonapi.Py_AddPendingCall(self._call, None)
            self._tell()

    def _in_main_thread(self, _: int | None) -> int:
        if not self._ended.is_set():
            self._look()
        return 0
