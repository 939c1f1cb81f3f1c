"""Reports what a short rehearsal is doing if a step takes long: silent for minutes, it would look as if it hung.

A step that goes on gets a line, each next line after twice the time, and one at its end. Short steps get none.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from neuron_sim.counters import script_lines, script_time
from neuron_sim.counters.listener import Listener

LONG_S = 15.0
"""Seconds after which a step that goes on is reported first."""
_ENDED_S = 10.0
"""Seconds from which on a step that has ended is reported."""


class Progress(Listener):
    """``steps``: batches of a first pass. ``is_core``: whether this process has used the device. A process that only
    starts others, or reads data for them, has no steps and reports nothing. ``compilations``: see `recorder`.
    """

    def __init__(
        self,
        steps: int,
        say: Callable[[str], None],
        is_core: Callable[[], bool],
        compilations: Callable[[], tuple[int, int, float]],
    ) -> None:
        """Nothing has run."""
        self._steps, self._say, self._is_core, self._compilations = steps, say, is_core, compilations
        self.begin()

    def begin(self) -> None:
        self._trained = 0
        self._due_s = 0.0

    def waits(self, seconds: float) -> None:
        if seconds < max(LONG_S, self._due_s) or not self._is_core():
            return
        self._due_s = 2 * seconds
        where = _where()
        what = f"training step {self._trained + 1}"
        if self._trained >= max(1, self._steps):  # what runs behind a first pass is not known yet
            what = f"what follows training step {self._trained}, such as an evaluation or a later pass,"
        begun, compiled, compiling = self._compilations()
        now = "compile" if begun > compiled else "record or compute"
        self._say(
            f"short rehearsal: {what} has not ended after {seconds:.0f} s (this machine's processors {now} it; so far "
            f"{compiled} graph{'' if compiled == 1 else 's'} compiled in {compiling:.0f} s)."
            f"{f' The script is at {where}.' if where else ''}"
        )

    def step(self, record: dict[str, Any]) -> None:
        seconds, compiling = record["seconds"], record["compile_seconds"]
        self._trained += record["optimizer"]
        if record["optimizer"] and not record.get("updated"):
            self._steps = 0  # it accumulates: a first pass goes on for some optimizer steps, so more batches
        # A step that takes as long as those before it is not reported while it goes on.
        self._due_s = 2 * (seconds - compiling)
        if not record["optimizer"] or seconds < _ENDED_S:
            return
        number = f"{self._trained} of {self._steps}" if self._trained <= self._steps else f"{self._trained}"
        compiled = f", {compiling:.0f} s of them to compile" if compiling >= 1 else ""
        self._say(f"short rehearsal: training step {number} took {seconds:.0f} s{compiled}.")


def _where() -> str:
    """The line at which the script's thread is, seen from outside, since it may be inside torch_xla. `xmp.spawn` runs
    the script in another thread than the main one; empty if neither is at a line of the script.
    """
    frames = sys._current_frames()
    threads = (script_time.clock.ident, threading.main_thread().ident)
    lines = [script_lines.calling_line(frames[one]) for one in threads if one in frames]
    return next((line for line in lines if line != "?"), "")
