"""How far a script goes through its loaders, and the early end of each pass in a short rehearsal.

The first pass over a loader ends after the batches asked for, each later one after a batch: how often a script
goes through its data is counted, not guessed. A script that asks for its batches by itself, or makes them, is
ended after as many training steps. All of this follows counts that are the same on each core.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from neuron_sim.rehearsal import loops

_EVALUATED = 4
"""So many batches belong to a first pass without gradients: nothing is timed there."""
_READ_AHEAD = 2
"""Times the batches asked for: transformers' Trainer takes a step's batches before it trains on the first."""
_OPTIMIZED = 3
"""So many optimizer steps belong to a first pass that trains: with accumulation, more batches."""
_MOST = 8
"""Times the batches asked for: after so many training steps the script is ended in any case."""


@dataclass(frozen=True)
class LoaderFacts:
    """What a loader says of itself. ``batches``: of a whole pass on this core; None: it does not say.

    ``split``: each core goes through a part of the data set of its own.
    """

    batches: int | None = None
    split: bool = False


@dataclass
class Pass:
    """The passes over one loader."""

    facts: LoaderFacts | None = None
    passes: int = 0
    taken: int = 0
    trains: bool = False
    """Whether gradients were computed from its batches."""
    left: bool = False
    """Whether the script left the latest pass before its end."""
    now: int = 0
    """Batches of the pass that is under way."""
    owner: weakref.ref[Any] | None = None
    optimized_before: int = 0
    bounds: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By condition: the batch at which it was first read, and what it compared then."""
    bound: int | None = None
    """Batches of this core after which a condition of the script's ends the loop."""


class Passes:
    """What the script's loaders show. ``steps``: batches of a pass in a short rehearsal; None: all of them."""

    def __init__(self, steps: int | None, say: Callable[[str], None]) -> None:
        """Nothing has been seen."""
        self.steps = steps
        self._say = say
        self._optimized = 0
        self._trained = 0
        self._by_itself = 0
        self._is_cut = False
        self.ended = False
        """Whether the script was ended here, before its own end."""

    def before(self, record: Pass, owner: Any, *, evaluates: bool) -> bool:
        """A batch is asked for: whether the pass is over.

        ``owner``: one object a pass. ``evaluates``: no gradients are recorded.
        """
        if record.owner is None or record.owner() is not owner:
            self._begin(record, owner)
        if self.steps is None:
            return False
        frame = loops.caller()
        self._is_cut = not loops.asks_by_itself(frame)
        if not self._is_cut:
            return False
        self._read_bounds(record, loops.counts(frame))
        if record.now < self._allowed(record, self.steps, evaluates=evaluates):
            return False
        self.end(record)
        return True

    def came(self, record: Pass) -> None:
        """The batch is there."""
        record.now += 1
        record.taken += 1

    def end(self, record: Pass) -> None:
        """The pass has come to its end."""
        record.owner, record.left = None, False

    def optimized(self, *_: Any) -> None:
        """An optimizer has made a step."""
        self._optimized += 1

    def step_ended(self, *, trains: bool) -> None:
        """mark_step has run. Raises SystemExit once a short rehearsal has seen enough."""
        if self.steps is None or not trains or self.ended:
            return
        self._trained += 1
        self._by_itself += not self._is_cut
        if self._by_itself < self.steps and self._trained < _MOST * self.steps:
            return
        self.ended = True
        self._say(
            f"short rehearsal: {self._trained} training steps are enough. The script is ended here, with exit code 0; "
            "what it does after its training loop was not rehearsed."
        )
        raise SystemExit(0)

    def _begin(self, record: Pass, owner: Any) -> None:
        record.owner = weakref.ref(owner)
        record.passes += 1
        record.now, record.left = 0, True
        record.optimized_before = self._optimized

    def _allowed(self, record: Pass, steps: int, *, evaluates: bool) -> int:
        if record.passes > 1:
            return 1
        if evaluates:
            return min(steps, _EVALUATED)
        if not record.trains:
            return _READ_AHEAD * steps
        optimized = self._optimized - record.optimized_before
        return steps if optimized >= _OPTIMIZED else _MOST * steps

    def _read_bounds(self, record: Pass, counts: Mapping[str, tuple[float, float]]) -> None:
        """A count that grows from batch to batch, and the number that it runs up to, tell the last batch."""
        ends = []
        for condition, (count, limit) in counts.items():
            first, started = record.bounds.setdefault(condition, (record.taken, count))
            if record.taken > first and count > started:
                ends.append(record.taken + (limit - count) * (record.taken - first) / (count - started))
        if ends:
            record.bound = math.ceil(min(ends) - 1e-9)
