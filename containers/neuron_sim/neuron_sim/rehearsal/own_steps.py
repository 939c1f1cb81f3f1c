"""Training steps of a script that loops over no loader: the loops around them tell how many it would make."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

from neuron_sim.rehearsal import loops, turns
from neuron_sim.rehearsal.passes import Pass, Passes

_TURNS = ("turns", True)


class OwnSteps:
    """Counts such steps as batches of a loader without a length, whose loop ends by the script's own count."""

    def __init__(self, passes: Passes) -> None:
        """No step has been made."""
        self._passes = passes
        self._run = Pass(passes=1, trains=True, left=True, owner=weakref.ref(self))
        self._samples = 0

    def made(self, samples: int) -> None:
        """Called after a step that trained on ``samples`` samples, in a call from the script's line that ends it."""
        if not samples:
            return
        frame = loops.behind_generators(loops.caller())
        around = loops.outermost(frame)
        if around is None:
            return
        outer, loop = around
        counts = loops.counts_of(outer, loop)
        if (taken := turns.taken(frame)) is not None:
            counts[_TURNS] = taken
        self._samples, run = samples, self._run
        run.line, run.loop = f"{Path(outer.f_code.co_filename).name}:{loop.lineno}", loops.at(outer, loop)
        run.read_bounds(counts)
        self._passes.came(run)
        self._passes.trained_by_itself(run)

    def record(self) -> dict[str, Any] | None:
        """The record, like that of a loader; None: there were no such steps."""
        if not self._run.taken:
            return None
        of_loader = {"batches": None, "split": False, "last": None, "sequence_length": None}
        return {"line": self._run.line, "samples": self._samples, **of_loader, **self._run.to_dict()}
