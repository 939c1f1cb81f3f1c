"""How far a script goes through its loaders, and the early end of each pass in a short rehearsal.

The first pass over a loader ends after the batches asked for, each later one with the optimizer's next step: how
often a script goes through its data is counted, not guessed. A script that asks for its batches by itself, or makes
them, is ended after as many training steps, and some of the optimizer's. All of this follows counts that are the same
on each core.
"""

from __future__ import annotations

import atexit
import math
import multiprocessing
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import FrameType
from typing import Any, NoReturn

from neuron_sim.rehearsal import iterators, loops, turns

_EVALUATED = 3
"""So many batches belong to a first pass without gradients: one compiles, the others show that the next are like it.
And a value that is read with each is read in as many steps as a line of the loop's must be: see `diagnostics.watch`.
"""
_READ_AHEAD = 2
"""Times the batches asked for: a loop of the script's own may take some before it trains on the first."""
_OPTIMIZED = 3
"""So many optimizer steps belong to a first pass that trains: with accumulation, more batches."""
_MOST = 13
"""Times the batches asked for: after so many training steps the script is ended in any case. And so many passes, where
more than as many would follow: each may evaluate, and write a checkpoint.
"""
_ALIKE = 3
"""So many passes are enough where nothing tells one from another: the second shows what begins anew in each."""
_SLICE = ("islice", True)
UNENDED_STEPS = 10
"""An optimizer's steps without an end of a step: some algorithms make a few (a critic's five)."""


@dataclass(frozen=True)
class LoaderFacts:
    """What a loader says of itself. ``batches``: of a whole pass on this core; None: it does not say.

    ``split``: each core goes through a part of the data set of its own. ``last``: items of its last batch; None: it
    does not say.
    """

    batches: int | None = None
    split: bool = False
    last: int | None = None
    size: int | None = None
    """Items of a batch, each of which its collate function may make several samples of."""
    workers: int = 0
    """Processes that prepare its batches."""
    streams: bool = False
    """Whether its data set takes no sampler."""


@dataclass
class Growth:
    """A count that the script compares with a limit. It is measured within the first pass, which is not cut so short.

    ``anew``: it begins again in each pass. ``decides``: see `loops.Count`.
    """

    batch: int
    first: int
    latest: int
    decides: bool = False
    anew: bool = False
    end: float | None = None
    """The batch with which the limit is reached."""

    def read(self, record: Pass, count: loops.Count) -> None:
        """What it is now. Only a change tells: it may grow once in several batches."""
        if record.passes > 1:
            self.anew = self.anew or (record.now > 0 and count.value < self.latest)
        elif count.value < self.latest:
            # What an earlier loop had left in the variable.
            self.batch, self.first, self.latest = record.now, count.value, count.value
        elif count.value > self.latest:
            grown = (record.now - self.batch) / (count.value - self.first)
            self.end = record.now + (count.limit - count.value) * grown
            self.latest = count.value


@dataclass
class Pass:
    """The passes over one loader, those for training or those without gradients."""

    passes: int = 0
    taken: int = 0
    trains: bool = False
    """Whether gradients were computed from its batches."""
    left: bool = False
    """Whether the script left the latest pass before its end."""
    now: int = 0
    """Batches of the pass that is under way."""
    owner: weakref.ref[Any] | None = None
    over: weakref.ref[Any] | None = None
    """Of the pass before, which has come to its end."""
    optimized_before: int = 0
    per_update: int | None = None
    """Batches up to the optimizer's first step."""
    left_after: int | None = None
    """Batches of the first pass, where the script left it and then began another."""
    wrapped: str | None = None
    """What of itertools, or zip, the loop goes through: it may end or repeat what the loader gives."""
    by_itself: bool = False
    """Whether the script has called ``next`` for the latest batch: how long it goes on, its steps tell."""
    sliced: bool = False
    """Whether the loop goes through an `islice`, whose end is known."""
    ends: dict[tuple[str, bool], Growth] = field(default_factory=dict)
    """By condition of the script's, and whether it is read after each batch."""
    inside: list[int] = field(default_factory=list)
    """Where a pass began within a loop that trains: how many batches that loop had had by then."""
    loop: loops.Loop | None = None
    line: str = "?"
    """Where its latest batch was asked for."""
    turns: turns.Turns | None = None
    """Of the ``for … in range(…)`` around them; None: there is none."""
    begun: list[int] = field(default_factory=list)
    """As each of its first passes began: passes over all loaders by then."""
    looked: Pass | None = None
    """As it was before the script asked for one batch by itself, as in ``next(iter(loader))``: no pass, should a loop
    over the loader follow, and no gradients have come of it.
    """

    def copy(self) -> Pass:
        """As it is now."""
        begun, ends, inside = list(self.begun), dict(self.ends), list(self.inside)
        return replace(self, begun=begun, ends=ends, inside=inside, looked=None)

    def bound(self, *, anew: bool = False, between: bool = False) -> int | None:
        """Batches after which a condition ends the loop.

        ``anew``: it counts within each pass. ``between``: it is read between passes only.
        """
        ends = [
            growth.end
            for (_, inner), growth in self.ends.items()
            if growth.end is not None and growth.anew == anew and inner != between
        ]
        return math.ceil(min(ends) - 1e-9) if ends else None

    def read_bounds(self, counts: Mapping[tuple[str, bool], loops.Count]) -> None:
        """A count that grows from batch to batch, and the number that it runs up to, tell the last batch."""
        for condition, count in counts.items():
            if self.passes == 1:
                new = Growth(self.now, count.value, count.value, count.decides)
                self.ends.setdefault(condition, new).read(self, count)
            elif condition in self.ends:
                self.ends[condition].read(self, count)

    def to_dict(self) -> dict[str, Any]:
        """As it is written down: see docs/reference/counters.md."""
        return {
            "passes": self.passes,
            "planned": self.turns and self.turns.number,
            "taken": self.taken,
            "trains": self.trains,
            "left": self.left,
            "left_after": self.left_after,
            "bound": self.bound(),
            "bound_of_pass": self.bound(anew=True),
            "bound_between": self.bound(between=True),
            "decides": self.decides,
            "wrapped": self.wrapped,
            "inside": len(self.inside),
            "every": self.every,
        }

    @property
    def every(self) -> float | None:
        """Batches of training from one pass to the next, where that can be told."""
        first, latest, more = self.inside[:1], self.inside[-1:], len(self.inside) - 1
        if more > 0 and latest > first:
            return (latest[0] - first[0]) / more
        # Once, with the first batch: it may be for once, or again after more batches than were taken.
        return float(first[0]) if first and more == 0 and first[0] > 1 else None

    @property
    def are_alike(self) -> bool:
        """Whether its passes have shown all: the script decides nothing by their number, and after each came the same.

        A script that hands the number to a function may evaluate after every tenth pass, unless it did after each.
        """
        if self.turns is None or self.turns.decides or len(self.begun) <= _ALIKE:
            return False
        others = {after - before for before, after in pairwise(self.begun)}
        return len(others) == 1 and (others != {1} or not self.turns.hands_on)

    @property
    def decides(self) -> bool:
        """Whether the script goes on, over how many passes it may be, until a bound is reached."""
        return any(growth.decides for growth in self.ends.values() if growth.end is not None)


class Passes:
    """What the script's loaders show. ``steps``: batches of a pass in a short rehearsal; None: all of them."""

    def __init__(self, steps: int | None, say: Callable[[str], None]) -> None:
        """Nothing has been seen."""
        self.steps = steps
        self._say = say
        self._optimized = 0
        self._unended: Counter[int] = Counter()
        """Of each optimizer, since the latest step ended."""
        self._begun = 0
        """Passes over all loaders."""
        self._trained = 0
        """Steps of an optimizer; where none is known, passes with gradients."""
        self._by_itself = 0
        self._is_cut = False
        self._training: Pass | None = None
        self.ended = False
        """Whether the script was ended here, before its own end."""

    @property
    def is_late(self) -> bool:
        """Whether what trains goes through one of the later passes of a short rehearsal, of a step each."""
        return self.steps is not None and self._training is not None and self._training.passes > 1

    def drop_look(self, record: Pass, owner: Any) -> bool:
        """A batch is asked for: whether the one before it was only looked at, and is none of any pass."""
        if record.looked is None or _is(record.owner, owner) or loops.asks_by_itself(loops.caller()):
            return False
        vars(record).update(vars(record.looked))
        self._begun -= 1
        return True

    def begins_in(self, record: Pass, owner: Any) -> loops.Place | None:
        """Of a batch that is asked for: where the loop is, if it begins a pass of a short rehearsal."""
        if self.steps is None or _is(record.owner, owner) or _is(record.over, owner):
            return None
        loop = loops.around(loops.caller())
        return loop and loop.place

    def before(self, record: Pass, owner: Any, *, evaluates: bool) -> bool:
        """A batch is asked for: whether the pass is over.

        ``owner``: one object a pass. ``evaluates``: no gradients are recorded.
        """
        if _is(record.over, owner):
            # transformers' Trainer asks on: what has come to its end begins no new pass. Behind a slice that was cut
            # short, another loop goes on with the same iterator, and the slice is not all that is taken.
            if record.ends.pop(_SLICE, None) is not None:
                record.wrapped = "islice"
            return True
        begins = not _is(record.owner, owner)
        frame = loops.caller() if begins or self.steps is not None else None
        record.looked = record.copy() if begins and loops.asks_by_itself(frame) else None
        if begins:
            self._begin(record, owner)
        if self.steps is None:
            return False
        if begins:
            self._place(record, frame)
        between = iterators.between(owner) if begins or record.sliced else iterators.Between()
        record.wrapped, record.sliced = record.wrapped or between.wrapped, between.sliced is not None
        evaluates = evaluates or loops.is_evaluation(frame) or self._follows_training(record, frame)
        record.by_itself = loops.asks_by_itself(frame)
        self._is_cut = not record.by_itself
        if not self._is_cut:
            return False
        counts = loops.counts(frame)
        if between.sliced is not None:
            counts[_SLICE] = between.sliced
        record.read_bounds(counts)
        if record.now < self._allowed(record, self.steps, evaluates=evaluates):
            return False
        self.end(record)
        return True

    def came(self, record: Pass) -> None:
        """The batch is there."""
        record.now += 1
        record.taken += 1

    def trained(self, record: Pass) -> None:
        """Gradients are computed from its batch."""
        record.trains, self._training, record.looked = True, record, None

    def trained_by_itself(self, record: Pass) -> None:
        """A step has trained on a batch that no loop over a loader gave."""
        self.trained(record)
        self._is_cut = False

    def anew(self, record: Pass) -> None:
        """What has come to its end begins again: workers that persist have one iterator for all passes."""
        record.over = record.owner = None

    def end(self, record: Pass) -> None:
        """The pass has come to its end."""
        record.over, record.owner, record.left = record.owner, None, False

    def optimized(self, optimizer: Any, *_: Any) -> None:
        """An optimizer has made a step. Raises SystemExit in a short rehearsal whose steps nothing ends."""
        self._optimized += 1
        self._unended[id(optimizer)] += 1
        unended = self._unended[id(optimizer)]
        if self._training is not None and self._training.per_update is None:
            self._training.per_update = self._training.now
        if self.steps is not None and not self.ended and unended >= UNENDED_STEPS:
            self._end_script(f"{unended} optimizer steps without an end (torch_xla.sync())")

    def step_ended(self, *, trains: bool) -> None:
        """mark_step has run. Raises SystemExit once a short rehearsal has seen enough."""
        updated = bool(self._unended)
        self._unended.clear()
        if self.steps is None or not trains or self.ended:
            return
        if self._optimized and not updated:
            return  # one of the passes of an accumulation
        self._trained += 1
        self._by_itself += not self._is_cut
        if self._training is not None:
            self._end_passes(self._training)
        enough = self._by_itself >= self.steps and self._optimized >= _OPTIMIZED
        if enough or self._trained >= _MOST * self.steps:
            self._end_script(f"{self._trained} training steps")

    def _end_passes(self, training: Pass) -> None:
        """Where its later passes show no more. A few more let the script come to what it does after them."""
        planned, alike = training.turns, training.are_alike
        if planned is None:
            return
        most = _ALIKE if alike else _MOST
        allowed = most + 1 if alike and planned.is_last else 2 * _MOST
        if training.passes > most and planned.number > allowed:
            self._end_script(f"{most} passes of {planned.number}")

    def _end_script(self, seen: str) -> NoReturn:
        self.ended = True
        self._say(
            f"short rehearsal: {seen} are enough. The script is ended here, with exit code 0; "
            "what it does after its training loop was not rehearsed."
        )
        atexit.register(_end_helpers)  # before multiprocessing's own handler, which waits for them
        raise SystemExit(0)

    def _begin(self, record: Pass, owner: Any) -> None:
        if record.passes == 1 and record.left:
            record.left_after = record.now
        record.owner = weakref.ref(owner)
        record.passes += 1
        self._begun += 1
        if len(record.begun) <= _ALIKE:
            record.begun.append(self._begun)
        record.now, record.left = 0, True
        record.optimized_before = self._optimized

    def _place(self, record: Pass, frame: FrameType | None) -> None:
        """Which loop goes over it, how often, and within which loop that trains."""
        record.loop = loops.around(frame)
        record.turns = record.turns or turns.around(frame)
        training = self._training
        if training is None or training is record or not training.left:
            return
        is_running = training.owner is not None and training.owner() is not None
        # A loop of a library's, as transformers' Trainer, leaves nothing but its iterator.
        if is_running and (training.loop is None or loops.is_within(training.loop, frame)):
            record.inside.append(training.taken)

    def _follows_training(self, record: Pass, frame: FrameType | None) -> bool:
        """Whether no gradients come of its batches, in a loop other than that which trains."""
        training = None if self._training is None else self._training.loop
        if training is None or record.trains or record.loop is None or record.loop.place == training.place:
            return False
        return loops.asks_in_loop(frame)  # a library may take batches ahead of training on them

    def _allowed(self, record: Pass, steps: int, *, evaluates: bool) -> int:
        optimized = self._optimized - record.optimized_before
        if record.passes > 1:
            # A pass without an optimizer's step would be no step of a script that accumulates gradients.
            return 1 if optimized else record.per_update or 1
        if evaluates:
            return min(steps, _EVALUATED)
        if (
            not record.trains
        ):  # a library's loop may take all batches of an update before it trains on the first
            return (_READ_AHEAD if record.loop else _MOST) * steps
        return steps if optimized >= _OPTIMIZED else _MOST * steps


def _end_helpers() -> None:
    """End the processes that the script would have ended after its training loop."""
    for process in multiprocessing.active_children():
        process.terminate()


def _is(reference: weakref.ref[Any] | None, owner: Any) -> bool:
    return reference is not None and reference() is owner
