"""What a short rehearsal is at, where a step takes long: without a word for minutes it looks as if it hung.

Of a step that goes on, a line after twice as long as the one before, and one of its end. Nothing of short ones.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from neuron_sim.counters import script_lines
from neuron_sim.counters.listener import Listener

LONG_S = 30.0
"""Of a step that goes on."""
_ENDED_S = 10.0
"""Of one that has ended."""


class Progress(Listener):
    """``steps``: batches of a first pass."""

    def __init__(self, steps: int, say: Callable[[str], None]) -> None:
        """Nothing has run."""
        self._steps, self._say = steps, say
        self.begin()

    def begin(self) -> None:
        """See `Listener`."""
        self._trained = 0
        self._due_s = 0.0

    def waits(self, seconds: float) -> None:
        """See `Listener`."""
        if seconds < max(LONG_S, self._due_s):
            return
        self._due_s = 2 * seconds
        self._say(
            f"short rehearsal: training step {self._trained + 1} has not ended after {seconds:.0f} s (this machine's "
            f"processors compile and compute it). The script is at {_where()}."
        )

    def step(self, record: dict[str, Any]) -> None:
        """See `Listener`."""
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
    """In the script's thread, which may be deep in torch_xla, without a way to ask it."""
    ident = threading.main_thread().ident
    return script_lines.calling_line(sys._current_frames().get(ident) if ident else None)
