"""What a short rehearsal is at, where a step takes long: without a word for minutes it looks as if it hung.

Of a step that goes on, a line after twice as long as the one before, and one of its end. Nothing of short ones.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from neuron_sim.counters import script_lines, script_time
from neuron_sim.counters.listener import Listener

LONG_S = 30.0
"""Of a step that goes on."""
_ENDED_S = 10.0
"""Of one that has ended."""


class Progress(Listener):
    """``steps``: batches of a first pass. ``is_core``: whether this process has used the device. One that only starts
    others, or reads data for them, makes no steps, and nothing is said of it.
    """

    def __init__(self, steps: int, say: Callable[[str], None], is_core: Callable[[], bool]) -> None:
        """Nothing has run."""
        self._steps, self._say, self._is_core = steps, say, is_core
        self.begin()

    def begin(self) -> None:
        self._trained = 0
        self._due_s = 0.0

    def waits(self, seconds: float) -> None:
        if seconds < max(LONG_S, self._due_s) or not self._is_core():
            return
        self._due_s = 2 * seconds
        where = _where()
        self._say(
            f"short rehearsal: training step {self._trained + 1} has not ended after {seconds:.0f} s (this machine's "
            f"processors compile and compute it).{f' The script is at {where}.' if where else ''}"
        )

    def step(self, record: dict[str, Any]) -> None:
        seconds, compiling = record["seconds"], record["compile_seconds"]
        self._trained += record["optimizer"]
        if record["optimizer"] and not record.get("updated"):
            self._steps = 0  # it accumulates: its first pass has some steps of the optimizer, so more batches
        # One that is like those before it is not told while it goes on.
        self._due_s = 2 * (seconds - compiling)
        if not record["optimizer"] or seconds < _ENDED_S:
            return
        number = f"{self._trained} of {self._steps}" if self._trained <= self._steps else f"{self._trained}"
        compiled = f", {compiling:.0f} s of them to compile" if compiling >= 1 else ""
        self._say(f"short rehearsal: training step {number} took {seconds:.0f} s{compiled}.")


def _where() -> str:
    """In the script's thread, which may be deep in torch_xla, without a way to ask it. `xmp.spawn` runs it in another
    than the process's first; empty where neither is in the script.
    """
    frames = sys._current_frames()
    threads = (script_time.clock.ident, threading.main_thread().ident)
    lines = [script_lines.calling_line(frames[one]) for one in threads if one in frames]
    return next((line for line in lines if line != "?"), "")
