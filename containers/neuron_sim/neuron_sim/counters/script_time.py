"""CPU time of the script's own threads, without what the simulator does in them.

On trn1 too a step costs the host the script's Python, torch's dispatch, the recording of operations (those
of the backward pass in a thread of autograd) and the hash of the graph when it ends. Computing, compiling
and collectives are the device's part there, and looking at them is the simulator's: that happens within
`aside`. Waiting (for the device, a batch, another core) takes no CPU time.
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
    """CPU seconds of one thread, of which some are ours. Its clock can be read from any thread."""

    def __init__(self, ident: int) -> None:
        self._clock = time.pthread_getcpuclockid(ident)
        self.is_ours = False
        self._counted = 0.0
        self._since = time.clock_gettime(self._clock)

    def switch(self, *, ours: bool) -> None:
        """What comes is ours, or the script's."""
        now = time.clock_gettime(self._clock)
        if not self.is_ours:
            self._counted += now - self._since
        self._since = now
        self.is_ours = ours

    def take(self) -> float:
        """Seconds of the script since the last call."""
        self.switch(ours=self.is_ours)
        counted, self._counted = self._counted, 0.0
        return counted


class ScriptTime:
    """CPU seconds of the script's thread, and of those that work for it. Other threads change nothing."""

    def __init__(self) -> None:
        """Count from here on, in this thread."""
        self.begin()

    def begin(self) -> None:
        """Count from here on, in this thread alone."""
        self._own = threading.get_ident()
        self._threads = {self._own: _Thread(self._own)}

    def follow(self) -> None:
        """This thread records operations for the script (autograd has one for each device): count it too."""
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
        """Whether only the script's own thread is followed."""
        return len(self._threads) == 1

    @property
    def is_aside(self) -> bool:
        """Whether what this thread does is the simulator's doing."""
        thread = self._threads.get(threading.get_ident())
        return thread is not None and thread.is_ours

    def take(self) -> float:
        """CPU seconds of the script since the last call. In a thread that is not followed: none, and from now on it is.

        A backward pass that ends steps does so in autograd's thread, which works for the script's.
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
        """What happens in this block is the simulator's doing, or the script's."""
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
"""The one of this process; `ScriptTime.begin` once the script's thread is known."""
# A forked process has a thread of its own, and the clock of its parent's is none there.
os.register_at_fork(after_in_child=clock.begin)


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
