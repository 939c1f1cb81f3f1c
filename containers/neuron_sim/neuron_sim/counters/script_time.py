"""CPU time of the script's own thread, without what the simulator does in it.

What a step costs the host on trn1 too is the script's Python, torch's dispatch, the recording of
operations and the hash of the graph when it ends. Computing, compiling and collectives are the
device's part there, and looking at them is ours: each of our entry points says `aside` around that.
Time in which the thread does not run (it sleeps, or waits for the device, a batch or another core) is no
CPU time to begin with.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class ScriptTime:
    """CPU seconds of one thread. Calls in other threads change nothing."""

    def __init__(self) -> None:
        """Count from here on, in this thread."""
        self.begin()

    def begin(self) -> None:
        """Count from here on, in this thread."""
        self._thread = threading.get_ident()
        self._is_ours = False
        self._counted = 0.0
        self._since = time.thread_time()

    def take(self) -> float:
        """CPU seconds of the script since the last call. In another thread: none, and that one is followed."""
        if threading.get_ident() != self._thread:
            self.begin()
            return 0.0
        self._switch(self._is_ours)
        counted, self._counted = self._counted, 0.0
        return counted

    @contextmanager
    def spent(self, *, ours: bool) -> Iterator[None]:
        """What happens in this block is the simulator's doing, or the script's."""
        if threading.get_ident() != self._thread:
            yield
            return
        before = self._is_ours
        self._switch(ours)
        try:
            yield
        finally:
            self._switch(before)

    def _switch(self, ours: bool) -> None:
        now = time.thread_time()
        if not self._is_ours:
            self._counted += now - self._since
        self._since = now
        self._is_ours = ours


clock = ScriptTime()
"""The one of this process; `ScriptTime.begin` once the script's thread is known."""


def aside() -> Any:
    """A block that is the simulator's doing, and would not be on trn1's host."""
    return clock.spent(ours=True)


def of_the_script() -> Any:
    """A block inside `aside` that trn1's host has too: the graph so far is hashed and handed over."""
    return clock.spent(ours=False)


def set_aside(function: F) -> F:
    """The function with all that it does `aside`."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        with clock.spent(ours=True):
            return function(*arguments, **keywords)

    return wrapped  # type: ignore[return-value]
