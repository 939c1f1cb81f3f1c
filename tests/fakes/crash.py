"""kill -9 for objects: from a chosen call on, nothing of a server has any effect."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import GeneratorType
from typing import Any


class Crash(BaseException):
    """The end of a thread: no ``except Exception`` holds it up."""


class Fuse:
    """Blows at the n-th call of anything it guards; never if ``calls`` is None."""

    def __init__(self, calls: int | None, after_effect: bool = False) -> None:
        """``after_effect``: the fatal call still has its effect, but nobody learns of it."""
        self.blown = threading.Event()
        self._left = calls
        self._after_effect = after_effect
        self._lock = threading.Lock()
        self._under_way = 0
        self._settled = threading.Condition(self._lock)

    def blow(self) -> None:
        """Crash now; returns when no call is under way any more, as after a real kill."""
        with self._lock:
            self.blown.set()
            assert self._settled.wait_for(lambda: self._under_way == 0, timeout=20)

    def enter(self) -> bool:
        """Begin a call; returns whether it is the fatal one, which still has its effect."""
        with self._lock:
            if self.blown.is_set():
                raise Crash
            if self._left is not None:
                self._left -= 1
                if self._left == 0:
                    self.blown.set()
                    if not self._after_effect:
                        raise Crash
                    self._under_way += 1
                    return True
            self._under_way += 1
            return False

    def leave(self) -> None:
        """End a call."""
        with self._lock:
            self._under_way -= 1
            self._settled.notify_all()

    def check(self) -> None:
        """End the thread if the crash has come."""
        if self.blown.is_set():
            raise Crash


class Mortal:
    """A port of a server that can crash."""

    def __init__(self, port: Any, fuse: Fuse) -> None:
        """Every method of ``port`` is guarded by the fuse."""
        self._port = port
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        """The guarded method, or the plain attribute."""
        member = getattr(self._port, name)
        if not callable(member):
            return member

        def call(*args: Any, **kwargs: Any) -> Any:
            fatal = self._fuse.enter()
            try:
                result = member(*args, **kwargs)
            finally:
                self._fuse.leave()
            if fatal:
                raise Crash
            return self._iterate(result) if isinstance(result, GeneratorType) else result

        return call

    def _iterate(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            self._fuse.check()
            yield item
        self._fuse.check()


@contextmanager
def quiet_crashes() -> Iterator[None]:
    """Threads that a crash ended are no news; all other exceptions of threads still are."""
    usual = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        if not issubclass(args.exc_type, Crash):
            usual(args)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = usual
