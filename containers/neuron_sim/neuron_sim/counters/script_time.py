"""CPU time of the script's own threads, without what the simulator does in them.

On trn1 too a step costs the host the script's Python, torch's dispatch, the recording of operations (those
of the backward pass in a thread of autograd) and the hash of the graph when it ends. Computing, compiling
and collectives are the device's part there, and observing them is the simulator's work: here both happen
within `aside`. Waiting (for the device, a batch, another core) takes no CPU time.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class _Thread:
    """CPU seconds of one thread, the script's and the simulator's (``ours``). Any thread can read its clock."""

    def __init__(self, ident: int) -> None:
        self._clock = time.pthread_getcpuclockid(ident)
        self.is_ours = False
        self._counted = 0.0
        self._since = time.clock_gettime(self._clock)

    def switch(self, *, ours: bool) -> None:
        """From now on, time is the simulator's (``ours``) or the script's."""
        now = time.clock_gettime(self._clock)
        if not self.is_ours:
            self._counted += now - self._since
        self._since = now
        self.is_ours = ours

    def take(self) -> float:
        """The script's seconds in this thread since the last call."""
        self.switch(ours=self.is_ours)
        counted, self._counted = self._counted, 0.0
        return counted


class ScriptTime:
    """CPU seconds of the script's thread, and of threads that work for it. Other threads do not count."""

    def __init__(self) -> None:
        """Start to count, in this thread."""
        self.begin()

    def begin(self) -> None:
        """Start to count anew, in this thread alone."""
        self._own = threading.get_ident()
        self._threads = {self._own: _Thread(self._own)}

    def follow(self) -> None:
        """Count the calling thread too: it records operations for the script (autograd has one for each device)."""
        ident = threading.get_ident()
        if ident not in self._threads:
            self._threads[ident] = _Thread(ident)

    @property
    def ident(self) -> int:
        """The script's own thread, as `threading` numbers it."""
        return self._own

    @property
    def is_own(self) -> bool:
        """Whether this is the script's own thread."""
        return threading.get_ident() == self._own

    @property
    def alone(self) -> bool:
        """Whether only the script's own thread is counted."""
        return len(self._threads) == 1

    @property
    def is_aside(self) -> bool:
        """Whether the calling thread's time is the simulator's now."""
        thread = self._threads.get(threading.get_ident())
        return thread is not None and thread.is_ours

    def take(self) -> float:
        """CPU seconds of the script since the last call. In a thread that is not counted: 0, and from now on it is.

        This happens if a backward pass ends steps: it does so in autograd's thread.
        """
        if threading.get_ident() not in self._threads:
            self.begin()
            return 0.0
        total = 0.0
        for ident, thread in list(self._threads.items()):
            try:
                total += thread.take()
            except OSError:  # the thread has ended, and its clock with it
                del self._threads[ident]
        return total

    @contextmanager
    def spent(self, *, ours: bool) -> Iterator[None]:
        """Count the block as the simulator's time (``ours``), or as the script's."""
        thread = self._threads.get(threading.get_ident())
        if thread is None:
            yield
            return
        before = thread.is_ours
        thread.switch(ours=ours)
        try:
            yield
        finally:
            thread.switch(ours=before)


clock = ScriptTime()
"""This process's clock. Call `ScriptTime.begin` once the script's thread is known."""
# A forked process has a new thread; the clock of the parent's thread is not valid there.
os.register_at_fork(after_in_child=clock.begin)


def aside() -> Any:
    """Count a block as the simulator's work, which trn1's host would not do."""
    return clock.spent(ours=True)


def of_the_script() -> Any:
    """Count a block inside `aside` as the script's: on trn1's host too, the graph so far is hashed and handed over."""
    return clock.spent(ours=False)


def set_aside(function: F) -> F:
    """Decorate a function: all its time is the simulator's."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        with clock.spent(ours=True):
            return function(*arguments, **keywords)

    return wrapped  # type: ignore[return-value]
