"""Work done while something else waits: a thread and its result."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def in_background(work: Callable[[], _T]) -> Callable[[], _T]:
    """Start ``work`` in a thread; the returned function waits for its result or raises its error."""
    outcome: list[_T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - handed to whoever asks for the result
            failure.append(error)

    thread = threading.Thread(target=run, name="windtunnel-background", daemon=True)
    thread.start()

    def result() -> _T:
        thread.join()
        if failure:
            raise failure[0]
        return outcome[0]

    return result
