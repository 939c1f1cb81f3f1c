"""Waiting for what comes by itself, on however busy a machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_for(
    condition: Any,
    what: str | Callable[[], object] = "the condition",
    *,
    patience_s: float = 60.0,
    pause_s: float = 0.01,
) -> Any:
    """Ask until it is true; returns what it gave then. ``what``: was waited for, or what to show when it never came."""
    deadline = time.monotonic() + patience_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(
                what() if callable(what) else f"{what} did not come true within {patience_s:g} s"
            )
        time.sleep(pause_s)
    return value
