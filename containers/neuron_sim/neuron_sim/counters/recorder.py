"""Counts what this core does, step by step, and writes it down.

A step ends where trn1 would run its graph: at mark_step. What the collectives cut
into several graphs here is added up into that one step.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import _XLAC
import torch

from neuron_sim import settings
from neuron_sim.compiler import cache
from neuron_sim.counters import (
    attention,
    batches,
    launches,
    parameters,
    pulse,
    records,
    script_time,
)
from neuron_sim.counters.called import called, is_calling
from neuron_sim.counters.graphs import Graph, GraphLog, Ran, forget_settings
from neuron_sim.counters.listener import Listener
from neuron_sim.counters.pending_reads import PendingReads
from neuron_sim.counters.records import CollectiveKind, Records
from neuron_sim.counters.timed_steps import TimedSteps
from neuron_sim.counters.wholes import Wholes
from neuron_sim.counters.why_new import Comparer

_READ_EVERY = 256
"""After how many collectives of a kind within one step the graphs' files are read."""


counting: Recorder
"""This process's recorder, once `start` has made it."""


def start(current: settings.Settings, is_late: Callable[[], bool]) -> Recorder:
    """Count from now on. Call before torch_xla makes its client. Writes only if the settings name a folder.

    ``is_late``: whether the script is in a later training pass of a short rehearsal; such a pass is one step long.
    """
    global counting
    counting = Recorder(current, is_late)
    return counting


def compilations() -> tuple[int, int, float]:
    """Of this process: how many graphs XLA has begun to compile, how many it has compiled, in how many seconds."""
    begun = _XLAC._xla_counter_value("UncachedCompile") or 0
    count, nanoseconds, *_ = _XLAC._xla_metric_data("CompileTime") or (0, 0.0)
    return int(begun), int(count), nanoseconds / 1e9


class Recorder:
    """The counters of one process. The graphs are counted on the first core of each host."""

    def __init__(
        self, current: settings.Settings, is_late: Callable[[], bool], listeners: Sequence[Listener] = ()
    ) -> None:
        """Open nothing yet: the rank is known at the first step (`xmp.spawn` sets it late)."""
        self._settings = current
        self._is_late = is_late
        self.listeners = listeners
        """They are called in this order."""
        self._records: Records | None = None
        self.graphs = GraphLog(os.environ) if settings.identity().local_rank == 0 else None
        self._comparer = Comparer()
        self._compiled_s = 0.0
        self._arithmetic: set[str] = set()
        self._wholes = Wholes(self.write)
        self._reads = PendingReads()
        self._samples = 0
        self._has_loader = self._is_part = False
        self.backward_passes = self.made = 0
        """In the latest step: how often gradients were computed; how many samples the script made without a loader."""
        called.watch()
        self.waits = False
        """Whether the script has waited for the device since the latest step."""
        self.has_failed = False
        self.has_trained = False
        """Whether gradients were computed in the latest step."""
        self._process = os.getpid()
        self._ended = False
        self._last_end = time.perf_counter()
        self._looked_at = time.monotonic()
        self._is_busy = False
        self._pulse_error: Exception | None = None
        self._pulse = pulse.Pulse(self._look_meanwhile, self._wait) if self.graphs is not None else None
        self._held = parameters.Held()
        self._trace_s = 0.0
        self._timed = TimedSteps(current.counters_dir)
        script_time.clock.begin()
        self._reset()

    @property
    def sees_steps(self) -> bool:
        """Whether graphs are counted: on a host's first core, unless the user asked for torch_xla's debug output."""
        return self.graphs is not None and self.graphs.enabled

    @property
    def has_exchanged(self) -> bool:
        """Whether the current step has had a collective."""
        return bool(self._collectives)

    def begin(self) -> None:
        """Start anew: this process has learned its rank only now, or is the child of one that counts."""
        if self.graphs is not None and self._process == os.getpid():
            self.graphs.close()
            self._end_pulse()
        forget_settings(os.environ)
        self.__init__(self._settings, self._is_late, self.listeners)  # type: ignore[misc]
        for listener in self.listeners:
            listener.begin()

    def _reset(self) -> None:
        """Begin a step."""
        self._executed: Counter[str] = Counter()
        self._reads.begin()
        self._collectives: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self._collective_s = 0.0
        self._input_wait_s = 0.0
        self._compile_s = 0.0
        if self._is_part:
            return  # the training step that has begun goes on
        self._trains = self._in_pieces = False
        self._updates = 0
        batches.sent.forget()
        batches.summed.clear()

    # Methods that the table of hooks calls, in the order in which a script gets there.

    @script_time.set_aside
    def collective(self, kind: CollectiveKind, payload_bytes: int, seconds: float) -> None:
        """Count a collective of this core: payload bytes of this rank, seconds from its call to its result here."""
        entry = self._collectives[kind]
        entry[0] += 1
        entry[1] += payload_bytes
        self._collective_s += seconds
        if entry[0] % _READ_EVERY == 0:
            # Reading after each would be half of what counting costs; a script without mark_step needs it.
            self.look()

    def around_backward(self, backward: Callable[..., None]) -> Callable[..., None]:
        """Decorate `torch.autograd.backward`: gradients are computed, so the step trains.

        With gradient accumulation, most training steps are without an optimizer's step.
        """

        @functools.wraps(backward)
        def noticed_backward(*arguments: Any, **keywords: Any) -> None:
            self._trains = True
            self._timed.time_reference(first=True)
            loss = arguments[0] if arguments else None
            if script_time.clock.alone and isinstance(loss, torch.Tensor) and loss.requires_grad:
                # Called where the gradients of this device are computed: in autograd's thread for it.
                loss.register_hook(lambda _: script_time.clock.follow())
            with batches.sent.gradients():
                backward(*arguments, **keywords)

        return noticed_backward

    @script_time.set_aside
    def optimized(self, optimizer: Any, *_: Any) -> None:
        """Called after an optimizer's step."""
        self._trains = True
        self._updates += 1
        self._timed.time_reference()
        if self.graphs is not None and self._held.stepped(optimizer):
            self.write(self._held.record())

    @script_time.set_aside
    def batch(self, _loader: Any, samples: int, waited_s: float) -> None:
        """Called for each batch of the input pipeline. Samples below 0 take back a batch that no step computed with."""
        self._input_wait_s += waited_s
        self._samples = max(0, self._samples + samples)
        # A loader that is used without gradients, for evaluation, does not count here.
        self._has_loader = self._has_loader or torch.is_grad_enabled()

    @script_time.set_aside
    def in_pieces(self, samples: int) -> None:
        """Take back the current batch, of so many samples: it comes again in microbatches, each with a `batch` call."""
        self._samples = max(0, self._samples - samples)
        self._in_pieces = True

    def step_ended(self) -> None:
        """Called after mark_step: write a record of the step, if it ran anything.

        In it ``optimizer`` tells whether it was a training step, ``updated`` whether an optimizer stepped in it, and
        ``part`` that it ended within a forward or backward pass, and so is a part of the next step.
        """
        now, ended = time.perf_counter(), time.time()
        seconds, self._last_end = now - self._last_end, now
        self._trace_s += script_time.clock.take()
        # XLA compiles in the script's thread, and tells only elapsed time: for a step that compiles this is a guess.
        traced_s = max(0.0, self._trace_s - self._compile_s)
        with script_time.aside():
            self._is_busy = True  # what a pulse took in now would be in no step's record
            self._is_part = batches.sent.computes_gradients or (not self._trains and is_calling())
            self.has_trained = self._trains and not self._is_part
            self._write_step(seconds, ended, traced_s)
            self._timed.step_ended(seconds, traced_s, trains=self.has_trained)
        if self.graphs is None:
            self._trace_s = 0.0  # no step is written, so it cannot be added to a later one
        self._reset()
        self._is_busy = False

    def _write_step(self, seconds: float, ended: float, traced_s: float) -> None:
        self.look()
        self._write_start()
        self._wholes.end()
        reads, elsewhere = self._reads.record(ended=not self._ended)
        self._executed += elsewhere
        if not self._is_part:
            called.step_ended(trains=self._trains)
        by_itself = self.has_trained and not self._has_loader
        self.backward_passes = 0 if self._is_part else batches.sent.passes
        self.made = batches.sent.samples(self._updates) if by_itself else 0
        # A batch counts in the step that computes with it: transformers' Trainer fetches batches ahead,
        # and runs small graphs of its own (how many labels there are) between fetching and training.
        samples = 0
        if not self._arithmetic.isdisjoint(self._executed):
            samples, self._samples = self._samples, 0
            samples = self.made or samples
        if self.graphs is not None and (self._executed or self._collectives):
            record = {
                "kind": "step",
                "time": round(ended, 6),  # of the step's end; minus `seconds`, of its beginning
                "seconds": round(seconds, 6),
                "optimizer": self.has_trained,
                "samples": samples,
                "graphs": dict(self._executed),
                "collectives": {n: {"count": c, "bytes": b} for n, (c, b) in self._collectives.items()},
                "collective_seconds": round(self._collective_s, 6),
                "input_wait_seconds": round(self._input_wait_s, 6),
                "compile_seconds": round(self._compile_s, 6),
                "trace_seconds": round(traced_s, 6),
            }
            self._trace_s = 0.0
            some = {
                "updated": self.has_trained and bool(self._updates),
                "part": self._is_part,
                "microbatch": self._in_pieces,
                "reference_seconds": round(self._timed.reference_s, 6),
                "waited": self.waits,
                "late": self._is_late(),
                "sdpa": attention.take(),
                "launches": launches.counted.take(),
                **reads,
            }
            record |= {key: value for key, value in some.items() if value}
            self.waits = False
            self.write(record)
            for listener in self.listeners:
                listener.step(record)

    def failed(self) -> None:
        """Called when the script has ended with an exception."""
        self.has_failed = True

    def end(self) -> None:
        """Write the records that are left, when the process ends. Idempotent."""
        if self._ended or os.getpid() != self._process:
            return  # another process is a child that the script has forked
        self._ended = True
        self._end_pulse()
        self.look()
        if self._executed or self._collectives:
            # What ran after the last mark_step, or all of it when the script never calls it.
            self.step_ended()
        for listener in self.listeners:
            listener.ended()
        if self.graphs is not None:
            for listener in self.listeners:
                listener.close()
        if self._records is not None:
            rank = settings.identity().rank
            self.write(records.end(rank, failed=self.has_failed))
        if self.graphs is not None:
            self.graphs.close()

    def _end_pulse(self) -> None:
        if self._pulse is not None:
            self._pulse.end()

    def _look_meanwhile(self) -> None:
        """Call `look` if it has not been called for long. An exception of it is raised by the next `look`."""
        mine = script_time.clock.is_own and os.getpid() == self._process
        if self._is_busy or not mine or time.monotonic() - self._looked_at < pulse.EVERY_S:
            return
        try:
            self.look()
        except Exception as error:  # noqa: BLE001 - of any kind: a pending call has no caller to catch it
            self._pulse_error = error

    def _wait(self) -> None:
        if os.getpid() == self._process and not self._ended:
            for listener in self.listeners:
                listener.waits(time.perf_counter() - self._last_end)

    @script_time.set_aside
    def look(self) -> None:
        """Take in what ran since the last call; write each new graph with its share of compile time."""
        if self.graphs is None:
            return
        if self._pulse_error is not None:
            error, self._pulse_error = self._pulse_error, None
            raise error
        before, self._is_busy = self._is_busy, True
        try:
            self._take_in(self.graphs)
        finally:
            self._is_busy, self._looked_at = before, time.monotonic()

    def _take_in(self, graphs: GraphLog) -> None:
        seen = graphs.read()
        wholes: dict[str, int | None] = {}
        for ran in seen.executed:
            wholes.setdefault(ran.graph, self._wholes.ran(ran))
            self._executed[ran.graph] += 1
            self._reads.ran(ran)
        compiled = seen.compiled
        if not compiled:
            return
        _, _, total = compilations()
        spent, self._compiled_s = total - self._compiled_s, total
        self._compile_s += spent
        noted = sum(graph.compile_seconds for graph in compiled)
        for graph in compiled:
            # XLA's files tell how the compile time is divided, torch_xla's metric how much it was.
            share = graph.compile_seconds / noted if noted else 1 / len(compiled)
            whole = wholes.get(graph.hash, self._wholes.number)
            self._compiled(dataclasses.replace(graph, compile_seconds=spent * share, whole=whole))

    def would_run(self, graph: Graph, *, is_part: bool) -> None:
        """Count a graph that would run now on trn1, but not here. ``is_part``: as a part of the next read's graph."""
        self.look()
        if not self._reads.knows(graph.hash):
            self._compiled(graph)
        if not is_part:
            self._wholes.alone(graph.hash)
        read_at = None if is_part else graph.source
        self._reads.ran(Ran(graph.hash, read_at=read_at, is_here=False, is_part=is_part))

    def would_run_again(self, pieces: Iterable[str] | None = None) -> None:
        """Count the graphs of this step, or these pieces of it, as a part of the graph that a read runs on trn1."""
        run = self.pieces()
        for graph in run if pieces is None else pieces:
            self._reads.ran(Ran(graph, is_here=False, is_part=True))

    def pieces(self) -> list[str]:
        """The graphs that collectives have run here in this step, and which on trn1 have yet to run."""
        self.look()
        return list(self._wholes.pieces.elements())

    def _compiled(self, graph: Graph) -> None:
        reason = self._comparer.explain(graph.hash, graph.source, graph.hlo_text)
        graph = dataclasses.replace(graph, reason=reason)
        cached = cache.lookup(graph.hlo_text, graph.hlo_proto, graph.source)
        self._reads.compiled(graph.hash, graph.cost.work.products)
        if graph.cost.flops:
            self._arithmetic.add(graph.hash)
        self.write(records.graph(graph, cached=cached))
        for listener in self.listeners:
            listener.graph(graph)

    def write(self, record: dict[str, Any]) -> None:
        """Append a record to this rank's file, if counters are written. It needs a key ``kind``."""
        self._write_start()
        if self._records is not None:
            self._records.write(record)

    def _write_start(self) -> None:
        """Open the file of this rank at the first call, and write its start record."""
        if self._records is not None or self._settings.counters_dir is None:
            return
        me = settings.identity()
        self._records = Records(self._settings.counters_dir / f"rank-{me.rank}.jsonl")
        self._records.write(records.start(me, self._settings))
