"""Warnings that torch raises inside of a function with a hook: they name the line that has called the function.

The hook's frames are between the two, so Python would name a line of the simulator, the same for all callers.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import neuron_sim
from neuron_sim.counters import script_lines


def start() -> None:
    """Have warnings at lines of the simulator shown: `around_show` asks the filters again, for the caller's line."""
    warnings.filterwarnings("always", module=rf"{neuron_sim.__name__}\.")


def around_show(show: Callable[[Any], None]) -> Callable[[Any], None]:
    """Decorate what Python calls to show a warning that the filters let through."""

    @functools.wraps(show)
    def shown(warned: Any) -> None:
        caller = _caller(warned) if script_lines.is_ours(warned.filename) else None
        if caller is None:
            show(warned)
            return
        module = caller.f_globals
        warnings.warn_explicit(
            warned.message,
            warned.category,
            caller.f_code.co_filename,
            caller.f_lineno,
            module.get("__name__"),
            module.setdefault("__warningregistry__", {}),
            source=warned.source,
        )

    return shown


def _caller(warned: Any) -> FrameType | None:
    """The frame that has called the simulator's, one of which the warning names."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (frame.f_code.co_filename, frame.f_lineno) != (
        warned.filename,
        warned.lineno,
    ):
        frame = frame.f_back
    if frame is not None:
        # Where Python notes that a line has warned, so that it need not again: the next caller's line has not.
        frame.f_globals.pop("__warningregistry__", None)
    while frame is not None and script_lines.is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame
