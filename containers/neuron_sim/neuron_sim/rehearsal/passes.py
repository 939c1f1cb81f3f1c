"""Counts a script's passes over its loaders, and ends each pass early in a short rehearsal.

The first pass over a loader ends after the batches asked for, each later one with the optimizer's next step: so the
number of passes is counted, not guessed. A script that calls ``next`` for its batches, or makes them, is ended after
as many training steps and some optimizer steps. All of this depends only on counts that are the same on each core.
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
"""How many batches a first pass without gradients has: one compiles, the others show that the next are like it. It is
also in how many steps a line must read a value to count as in the loop: see `diagnostics.watch`.
"""
_READ_AHEAD = 2
"""How many times the batches asked for a loop of the script's own may take before it trains on the first."""
_OPTIMIZED = 3
"""How many optimizer steps a first pass that trains has at least; with accumulation, these take more batches."""
_MOST = 13
"""After this many times the batches asked for, in training steps, the script is ended in any case. It is also ended
after this many passes, if more than as many would follow: each may evaluate, and write a checkpoint. As many that are
alike are gone through for what follows them.
"""
_ALIKE = 3
"""How many passes are enough if all are alike; the second shows what begins anew in each."""
_SLICE = ("islice", True)
UNENDED_STEPS = 10
"""How many optimizer steps without the end of a step are a fault: some algorithms make a few (a critic's five)."""


@dataclass(frozen=True)
class LoaderFacts:
    """What is known of a loader. ``batches``: of a whole pass on this core; None: not known.

    ``split``: each core goes through its own part of the data set. ``last``: items of its last batch; None: not known.
    """

    batches: int | None = None
    split: bool = False
    last: int | None = None
    size: int | None = None
    """Items of a batch; its collate function may make several samples of each."""
    workers: int = 0
    """Processes that prepare its batches."""
    streams: bool = False
    """Whether its data set takes no sampler."""


@dataclass
class Growth:
    """How a count grows that the script compares with a limit; measured in the first pass, which is the longest.

    ``anew``: the count begins again in each pass. ``decides``: see `loops.Count`.
    """

    batch: int
    first: int
    latest: int
    decides: bool = False
    anew: bool = False
    end: float | None = None
    """The batch with which the limit is reached."""

    def read(self, record: Pass, count: loops.Count) -> None:
        """Take in the count as it is now. Only a change tells something: it may grow once in several batches."""
        if record.passes > 1:
            self.anew = self.anew or (record.now > 0 and count.value < self.latest)
        elif count.value < self.latest:
            # The variable had a value that an earlier loop had left.
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
    """Batches of the current pass."""
    owner: weakref.ref[Any] | None = None
    over: weakref.ref[Any] | None = None
    """The owner of the previous pass, which has come to its end."""
    optimized_before: int = 0
    per_update: int | None = None
    """Number of batches up to the optimizer's first step."""
    left_after: int | None = None
    """Batches of the first pass, if the script left it early and then began another."""
    wrapped: str | None = None
    """The iterator (zip, or of itertools) in the loop that may end or repeat the loader's batches."""
    by_itself: bool = False
    """Whether the script has called ``next`` for the latest batch; its length is then told by its steps."""
    sliced: bool = False
    """Whether the loop goes through an `islice`, whose end is known."""
    ends: dict[tuple[str, bool], Growth] = field(default_factory=dict)
    """By the script's condition, and whether it is tested after each batch."""
    inside: list[int] = field(default_factory=list)
    """For each pass that began within a loop that trains: how many batches that loop had taken by then."""
    loop: loops.Loop | None = None
    line: str = "?"
    """The line at which its latest batch was asked for."""
    turns: turns.Turns | None = None
    """The ``for … in range(…)`` around the passes; None: there is none."""
    begun: list[int] = field(default_factory=list)
    """For each of its first passes: how many passes over all loaders had begun by then."""
    looked: Pass | None = None
    """A copy from before the script took one batch, as in ``next(iter(loader))``. This counts as no pass, and the copy
    is restored, if a loop over the loader follows and no gradients were computed from the batch.
    """

    def copy(self) -> Pass:
        """A copy as of now."""
        begun, ends, inside = list(self.begun), dict(self.ends), list(self.inside)
        return replace(self, begun=begun, ends=ends, inside=inside, looked=None)

    def bound(self, *, anew: bool = False, between: bool = False) -> int | None:
        """Batches after which a condition ends the loop.

        ``anew``: of conditions that count within each pass. ``between``: of those tested only between passes.
        """
        ends = [
            growth.end
            for (_, inner), growth in self.ends.items()
            if growth.end is not None and growth.anew == anew and inner != between
        ]
        return math.ceil(min(ends) - 1e-9) if ends else None

    def read_bounds(self, counts: Mapping[tuple[str, bool], loops.Count]) -> None:
        """Take in counts: one that grows from batch to batch, and its limit, tell the last batch."""
        for condition, count in counts.items():
            if self.passes == 1:
                new = Growth(self.now, count.value, count.value, count.decides)
                self.ends.setdefault(condition, new).read(self, count)
            elif condition in self.ends:
                self.ends[condition].read(self, count)

    def to_dict(self) -> dict[str, Any]:
        """The passes as in the counters: see docs/reference/counters.md."""
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
        """How many training batches there are from one pass to the next; None: not known."""
        first, latest, more = self.inside[:1], self.inside[-1:], len(self.inside) - 1
        if more > 0 and latest > first:
            return (latest[0] - first[0]) / more
        # One pass, with the first batch: it may be the only one, or come again after more batches than were taken.
        return float(first[0]) if first and more == 0 and first[0] > 1 else None

    @property
    def are_alike(self) -> bool:
        """Whether its passes have shown all: the script decides nothing by their number, and the same followed each.

        A script that passes the number to a function may evaluate after every tenth pass, unless it did after each.
        """
        if self.turns is None or self.turns.decides or len(self.begun) <= _ALIKE:
            return False
        others = {after - before for before, after in pairwise(self.begun)}
        return len(others) == 1 and (others != {1} or not self.turns.hands_on)

    @property
    def decides(self) -> bool:
        """Whether the script goes on until a bound is reached, over any number of passes."""
        return any(growth.decides for growth in self.ends.values() if growth.end is not None)


class Passes:
    """Follows all passes over a script's loaders. ``steps``: batches of a pass in a short rehearsal; None: all."""

    def __init__(self, steps: int | None, say: Callable[[str], None]) -> None:
        """No batch has been asked for."""
        self.steps = steps
        self._say = say
        self._optimized = 0
        self._unended: Counter[int] = Counter()
        """Steps of each optimizer since the latest step ended."""
        self._begun = 0
        """Number of passes over all loaders."""
        self._trained = 0
        """Training steps: those with an optimizer's step; without an optimizer, those with gradients."""
        self._by_itself = 0
        self._is_cut = False
        self._training: Pass | None = None
        self.ended = False
        """Whether the script was ended here, before its own end."""

    @property
    def is_late(self) -> bool:
        """Whether training is in one of the later passes of a short rehearsal, which have one step each."""
        return self.steps is not None and self._training is not None and self._training.passes > 1

    def drop_look(self, record: Pass, owner: Any) -> bool:
        """Called when a batch is asked for: whether the one before was only looked at, and belongs to no pass."""
        if record.looked is None or _is(record.owner, owner) or loops.asks_by_itself(loops.caller()):
            return False
        vars(record).update(vars(record.looked))
        self._begun -= 1
        return True

    def begins_in(self, record: Pass, owner: Any) -> loops.Place | None:
        """Called when a batch is asked for: where the loop is, if this begins a pass of a short rehearsal."""
        if self.steps is None or _is(record.owner, owner) or _is(record.over, owner):
            return None
        loop = loops.around(loops.caller())
        return loop and loop.place

    def before(self, record: Pass, owner: Any, *, evaluates: bool) -> bool:
        """Called when a batch is asked for: whether the pass is over.

        ``owner``: one object per pass. ``evaluates``: no gradients are recorded.
        """
        if _is(record.over, owner):
            # transformers' Trainer asks again after the end: that begins no new pass. After a slice that was cut short,
            # another loop may go on with the same iterator: then the slice is not all that is taken.
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
        """Called when the batch has come."""
        record.now += 1
        record.taken += 1

    def trained(self, record: Pass) -> None:
        """Called when gradients are computed from its batch."""
        record.trains, self._training, record.looked = True, record, None

    def trained_by_itself(self, record: Pass) -> None:
        """Called when a step has trained on a batch that does not come from a loop over a loader."""
        self.trained(record)
        self._is_cut = False

    def anew(self, record: Pass) -> None:
        """Let a new pass begin with an iterator that has ended: persistent workers have one iterator for all passes."""
        record.over = record.owner = None

    def end(self, record: Pass) -> None:
        """End the current pass."""
        record.over, record.owner, record.left = record.owner, None, False

    def optimized(self, optimizer: Any, *_: Any) -> None:
        """Called after an optimizer's step. Raises SystemExit in a short rehearsal whose steps nothing ends."""
        self._optimized += 1
        self._unended[id(optimizer)] += 1
        unended = self._unended[id(optimizer)]
        if self._training is not None and self._training.per_update is None:
            self._training.per_update = self._training.now
        if self.steps is not None and not self.ended and unended >= UNENDED_STEPS:
            self._end_script(f"{unended} optimizer steps without an end (torch_xla.sync())")

    def step_ended(self, *, trains: bool) -> None:
        """Called after mark_step. Raises SystemExit once a short rehearsal has seen enough."""
        updated = bool(self._unended)
        self._unended.clear()
        if self.steps is None or not trains or self.ended:
            return
        if self._optimized and not updated:
            return  # gradients are accumulated, and this pass has no optimizer's step
        self._trained += 1
        self._by_itself += not self._is_cut
        if self._training is not None:
            self._end_passes(self._training)
        enough = self._by_itself >= self.steps and self._optimized >= _OPTIMIZED
        if enough or self._trained >= _MOST * self.steps:
            self._end_script(f"{self._trained} training steps")

    def _end_passes(self, training: Pass) -> None:
        """End the script if later passes show nothing new. If only a few are left, it goes on to what follows them."""
        planned, alike = training.turns, training.are_alike
        if planned is None:
            return
        most = _ALIKE if alike else _MOST
        # What follows the loop, such as saving, is worth some passes: a fault there would cost the whole job.
        behind = _MOST if alike else 2 * _MOST
        allowed = most + 1 if alike and planned.is_last else behind
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
        """Note which loop goes over the loader, how often, and within which loop that trains."""
        record.loop = loops.around(frame)
        record.turns = record.turns or turns.around(frame)
        training = self._training
        if training is None or training is record or not training.left:
            return
        is_running = training.owner is not None and training.owner() is not None
        # Of a library's loop, such as that of transformers' Trainer, only the iterator is known.
        if is_running and (training.loop is None or loops.is_within(training.loop, frame)):
            record.inside.append(training.taken)

    def _follows_training(self, record: Pass, frame: FrameType | None) -> bool:
        """Whether its loop is another one than the one that trains, and no gradients come of its batches."""
        training = None if self._training is None else self._training.loop
        if training is None or record.trains or record.loop is None or record.loop.place == training.place:
            return False
        return loops.asks_in_loop(frame)  # a library may take batches ahead of training on them

    def _allowed(self, record: Pass, steps: int, *, evaluates: bool) -> int:
        optimized = self._optimized - record.optimized_before
        if record.passes > 1:
            # A script that accumulates gradients needs all batches up to the optimizer's step for one step.
            return 1 if optimized else record.per_update or 1
        if evaluates:
            return min(steps, _EVALUATED)
        if not record.trains:
            # A library's loop may take all batches of an update before it trains on the first.
            return (_READ_AHEAD if record.loop else _MOST) * steps
        return steps if optimized >= _OPTIMIZED else _MOST * steps


def _end_helpers() -> None:
    """End the processes that the script would have ended after its training loop."""
    for process in multiprocessing.active_children():
        process.terminate()


def _is(reference: weakref.ref[Any] | None, owner: Any) -> bool:
    return reference is not None and reference() is owner
