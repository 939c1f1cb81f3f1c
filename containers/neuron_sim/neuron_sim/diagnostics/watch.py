"""Watches a script on the first core of each host: warns in the job's log, and sums up at its end."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _XLAC
import torch
import torch_xla

from neuron_sim import settings
from neuron_sim.counters import model_parallel, recorder, script_lines
from neuron_sim.counters.early_results import EarlyResults
from neuron_sim.counters.graphs import Graph
from neuron_sim.counters.listener import Listener
from neuron_sim.diagnostics import advice, for_cores, for_graphs, log, same_data
from neuron_sim.diagnostics.by_hand import ByHand
from neuron_sim.diagnostics.exchanges import Exchanges
from neuron_sim.diagnostics.fallbacks import Fallbacks
from neuron_sim.diagnostics.findings import Finding, Findings
from neuron_sim.diagnostics.gradients import Gradients
from neuron_sim.diagnostics.host_reads import HostReads, Line
from neuron_sim.diagnostics.host_training import training as host_training
from neuron_sim.diagnostics.loaders import Loaders
from neuron_sim.diagnostics.meeting import among_cores
from neuron_sim.diagnostics.recompiles import Recompilations
from neuron_sim.diagnostics.same_data import SameData
from neuron_sim.diagnostics.unequal_weights import Look, UnequalWeights
from neuron_sim.diagnostics.untied import Untied
from neuron_sim.diagnostics.wrong_splits import WrongSplits
from neuron_sim.rehearsal.passes import UNENDED_STEPS, Passes

_LOOP_STEPS = 3
"""In how many steps a line must read from the device to count as in the loop. A short rehearsal evaluates as many."""
_LOOP_SHARE = 0.5
"""In what share of the steps since its first read it must read. The documentation advises to read every tenth step."""
_NO_NUMBERS = 3
"""How many reads of NaN in a row are reported: a single one may be a step that a loss scaler skips."""
_TRAINING_STEPS = 3
"""After how many training steps it is reported if all of them lacked something."""
_UNENDED_AT_END = 3
"""How many optimizer steps, within one step that nothing ends, are reported at the script's end, if it has ended one
step at most (when it saves its model, for example). A short rehearsal makes no more.
"""
_INPUT_STEPS = 3
_INPUT_SHARE = 0.2
_INPUT_SECONDS = 0.5


@dataclass
class _Input:
    """The steps with a loader's batches: how many, how long, and how long they waited for batches."""

    steps: int = 0
    seconds: float = 0.0
    waited_s: float = 0.0


class Watch(Listener):
    """Gets loaders and reads from the hooks, everything else from the recorder."""

    def __init__(
        self, counters_dir: Path | None, passes: Passes, remark: Callable[[str], None], look: Look
    ) -> None:
        """Nothing has been seen. ``counters_dir``: a folder that the cores of this host share.

        ``remark`` leaves a text that the other cores report if they wait for this one in vain; ``look`` gives the
        values of a computed tensor.
        """
        self._look = look
        self._shared = counters_dir
        self._remark = remark
        host_training.watch()
        self.loaders = Loaders(recorder.counting.batch, passes, self._loader_failed, self._keep, look)
        self.early = EarlyResults()
        self.reads = HostReads(self.early.reads)
        self.fallbacks = Fallbacks()
        self.untied = Untied()
        self.splits = WrongSplits()
        self.gradients = Gradients()
        self._away = False
        self.begin()

    def note(self, finding: Finding) -> None:
        """Add what another part of the simulator has found."""
        self.findings.note(finding)

    def begin(self) -> None:
        """Forget all: this process has learned its rank only now, or is the child of one that watched."""
        self.findings = Findings(recorder.counting.write, log.say)
        self.early.begin()
        self.reads.forget()
        self._recompiles = Recompilations()
        self.fallbacks.forget()
        self.splits.forget()
        self.gradients.forget()
        self._has_stepped = False
        self._input: dict[int, _Input] = {}
        self._compiled_s = 0.0
        self._loop_steps = 0
        self._all_steps: Counter[bool] = Counter()
        self._optimized: Counter[int] = Counter()
        self._optimizer_line = "?"
        self._grown: Finding | None = None
        """What the reads of a step without end have compiled."""
        self._by_hand: ByHand | None = ByHand()
        """None: an optimizer changes the weights."""
        self._changes_by_hand = False
        self._held: list[int] = []
        """How many optimizer steps were in the first step that had any, and in the second."""
        self._trained_steps = 0
        self._next_look = _TRAINING_STEPS
        self._exchanges = Exchanges()
        self._same_data = SameData(among_cores(self._shared, ".first-batches"))
        self._weights = UnequalWeights(among_cores(self._shared, ".first-weights"), self._look)

    def around_backward(self, backward: Callable[..., None]) -> Callable[..., None]:
        """Decorate `torch.autograd.backward`: the step trains; has the script changed a weight since the last?"""

        @functools.wraps(backward)
        def looked(*arguments: Any, **keywords: Any) -> None:
            self.reads.trains = True
            if arguments:
                self.early.backward(arguments[0])
            if self._by_hand is not None and arguments and self._by_hand.has_changed(arguments[0]):
                self._changes_by_hand = True
                self._updated(self._by_hand)
            self._same_data.backward()
            self._exchanges.train()
            backward(*arguments, **keywords)

        return looked

    def bring(self, tensors: Sequence[torch.Tensor]) -> None:
        """Called with the tensors that this core brings to a collective."""
        self._same_data.bring(tensors)
        self._exchanges.bring(() if self._away else tensors)

    def before_optimizer(self, optimizer: Any, *_: Any) -> None:
        """Called before an optimizer's step, on every core."""
        self._weights.before_step(optimizer)

    def optimized(self, optimizer: Any, *_: Any) -> None:
        """Called after an optimizer's step, on every core."""
        self._by_hand = None
        self._changes_by_hand = False
        self._updated(optimizer)

    def _updated(self, optimizer: Any) -> None:
        self._same_data.updated(None if self.loaders.latest is None else self.loaders.latest.first)
        self._exchanges.updated(optimizer)
        if not recorder.counting.sees_steps or host_training.finding() is not None:
            return
        for finding in self.untied.findings():
            self.findings.note(finding)
        if _XLAC._get_use_eager_mode():
            if not settings.eager_debug_mode():  # which has a finding of its own
                self.findings.note(advice.eager_mode(script_lines.calling_line()))
            return  # eager operations do not wait for the end of a step
        self._optimized[id(optimizer)] += 1
        if self._optimized[id(optimizer)] == 1:
            self._optimizer_line = script_lines.calling_line()
        elif self._optimized[id(optimizer)] == UNENDED_STEPS:
            self._note_unended(UNENDED_STEPS)

    def around_rendezvous(self, exchange: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate torch_xla's exchange of bytes between ranks, which `xm.mesh_reduce` uses.

        Its graphs have the shapes of what is sent, which the script cannot make equal: they do not count.
        """

        @functools.wraps(exchange)
        def unwatched(*arguments: Any, **keywords: Any) -> Any:
            torch_xla.sync()  # the first thing that `exchange` does; done here, what is pending still counts
            self._away = True
            try:
                result = exchange(*arguments, **keywords)
                recorder.counting.look()
                return result
            finally:
                self._away = False

        return unwatched

    def graph(self, graph: Graph) -> None:
        self._compiled_s += graph.compile_seconds
        if (slow := for_graphs.slow_compile(self._compiled_s, settings.xla_flags())) is not None:
            self.findings.note(slow, at_once=True)
        if graph.reason is None or self._away or self.fallbacks.explains(graph.reason, graph.compile_seconds):
            return
        self._recompiles.graph(
            graph.source,
            graph.reason,
            graph.compile_seconds,
            graph.library,
            loader=self.loaders.latest,
            whole=graph.whole,
        )
        size = graph.hlo_text.count(" = "), graph.cost.input_bytes
        grown = self._recompiles.grown(graph.source, graph.library, *size, graph.compile_seconds)
        if grown is not None:
            self._note_grown(grown)

    def _note_grown(self, grown: Finding) -> None:
        """Note graphs that grow, if the optimizer steps and no step ends as an effect of that."""
        if (steps := max(self._optimized.values(), default=0)) >= _UNENDED_AT_END:
            self._grown = grown
            self._note_unended(steps)
        else:
            self.findings.note(grown)

    def _note_unended(self, steps: int) -> None:
        self.findings.note(advice.step_without_end(self._optimizer_line, steps, self._grown))

    def step(self, record: dict[str, Any]) -> None:
        self.early.begin()
        if self._away:
            return
        if not self._has_stepped and self.loaders.passes.steps is not None and not self.loaders.has_kept:
            recorder.counting.write(self.loaders.unfinished())
        self._has_stepped = True
        accumulates = record["optimizer"] and not record.get("updated") and not self._changes_by_hand
        for finding in self._recompiles.step(accumulates=accumulates):
            self.findings.note(finding)
        accessed = Counter(record.get("accessed", {}))
        self._note_fallbacks(accessed)
        self._note_reads(record)
        self._note_input(record)
        self._note_training(record)

    def _keep(self, seen: dict[str, Any]) -> None:
        if recorder.counting.sees_steps:
            recorder.counting.write(seen)

    def ended(self) -> None:
        self._note_no_exchange(ended=True)  # before all close: what follows from it is no finding of its own

    def close(self) -> None:
        """Called when the script has ended: write the final figures and the summary."""
        self._note_held()
        if len(self._held) == 1 and self._held[0] >= _UNENDED_AT_END:
            self._note_unended(self._held[0])
        if (seen := self.loaders.record()) is not None:
            recorder.counting.write(seen)
        self._note_fallbacks(Counter())
        if (unused := host_training.finding()) is not None:
            self.findings.note(unused, said=True)
        for loader, last in self.loaders.unreached_ends():
            self.findings.note(for_graphs.unreached_ragged_batch(loader, last))
        for (line, _), read in self.reads.lines.items():
            self._judge_read(line, read)
        self._note_no_numbers(1)
        for finding in self.fallbacks.all():
            self.findings.note(finding)
        self.findings.close()

    def _loader_failed(self, line: str, error: str) -> None:
        """Report it at once, on any core: its loop ends early, and the others then wait for it in a collective."""
        me = settings.identity()
        found = advice.loader_failed(line, error, me.rank if me.world_size > 1 else None)
        log.say(found.text, by_any=True)
        self.findings.note(found, said=True)
        self._remark(f"its DataLoader ({line}) raised {error}, which ended its loop")

    def _note_reads(self, record: dict[str, Any]) -> None:
        step, trains = self.reads.step, record["optimizer"]
        # A value that is read once a pass would count as read in each step, in passes of one step.
        counts = not self.loaders.passes.is_late
        self._loop_steps += counts
        self._all_steps[trains] += 1
        for (line, _), read in self.reads.lines.items():
            if read.latest_step != step:
                continue
            read.cuts += record.get("cut", {}).get(line, 0)
            read.again += record.get("computed_again", {}).get(line, 0)
            read.trains = read.trains or trains
            read.around.read(self._all_steps, trains=trains)
            if counts:
                read.since = read.since or self._loop_steps
                read.until = self._loop_steps
                read.steps += 1
                self._judge_read(line, read)
        self.reads.step += 1
        self.reads.trained += trains
        self.reads.trains = False
        self._note_no_numbers(_NO_NUMBERS)

    def _judge_read(self, line: str, read: Line) -> None:
        passed = read.until - read.since + 1
        if not read.told and (read.steps < _LOOP_STEPS or read.steps < _LOOP_SHARE * passed):
            return
        if read.library and not read.trains:
            return  # A script cannot change how a library evaluates (Trainer asks all cores for their sizes).
        read.told = True
        self.findings.note(
            advice.host_read(
                line,
                list(read.how),
                read.count,
                read.seconds,
                read.around.number,
                read.cuts,
                read.again,
                read.library,
                evaluates=read.around.only_evaluates and self._all_steps[True] > 0,
            )
        )

    def _note_no_numbers(self, least: int) -> None:
        for line, read in self.reads.no_numbers.items():
            if read.count >= least and read.since:
                self.findings.note(advice.no_number(line, read.how, read.since, read.count))

    def _note_fallbacks(self, accessed: Counter[str]) -> None:
        """Note new operations on the CPU. Their pending inputs ran first, on a line that torch_xla has named."""
        read = {line for (line, _), use in self.reads.lines.items() if use.latest_step == self.reads.step}
        for finding in self.fallbacks.new(line for line in accessed if line not in read):
            self.findings.note(finding)

    def _note_training(self, record: dict[str, Any]) -> None:
        """Check what several cores need to train one model: different data on each, and one sum of gradients."""
        self._exchanges.step(record["collectives"])
        if not self._optimized:
            return
        self._note_held()
        # More than one if nothing ended the steps: other faults are to be reported all the same.
        self._trained_steps += max(self._optimized.values())
        self._optimized.clear()
        if settings.identity().world_size == 1 or self._trained_steps < _TRAINING_STEPS:
            return
        self._note_no_exchange(ended=False)
        # This reads files, so not at each step of a long job; but more than once, for another core may be late.
        if self._trained_steps >= self._next_look:
            self._next_look *= 2
            self._compare_cores()

    def _note_no_exchange(self, *, ended: bool) -> None:
        if not self.gradients.are_missing:
            by_hand = self._by_hand is not None
            self._exchanges.note_lack(self._optimizer_line, self._trained_steps, by_hand, ended=ended)

    def _note_held(self) -> None:
        """Keep how many optimizer steps the first two such steps had. The second does not count in a later pass of a
        short rehearsal, where whatever follows the pass ends the step.
        """
        held = max(self._optimized.values(), default=0)
        if held and (not self._held or (len(self._held) == 1 and not self.loaders.passes.is_late)):
            self._held.append(held)

    def _compare_cores(self) -> None:
        """Check that cores have different data and equal weights. Cores with equal data may hold parts of one model."""
        loader = self.loaders.latest
        me = settings.identity()
        copies = model_parallel.other_copies() or me.local_ranks
        same, other = (
            # An earlier launch of this job may have had more ranks.
            [rank for rank in ranks if rank in copies and rank in me.local_ranks]
            for ranks in self._same_data.others()
        )
        if loader is not None and same:
            line = loader.made_at if loader.made_at != "?" else loader.iterated_at
            split = loader.facts is not None and loader.facts.split
            streams = loader.facts is not None and loader.facts.streams
            own = not loader.is_torchs
            self.findings.note(
                for_cores.same_data(
                    line, me.rank, same, same_data.FIRST, split=split, streams=streams, own=own
                )
            )
        elif same:
            self.findings.note(for_cores.same_gradients(self._optimizer_line, me.rank, same, same_data.FIRST))
        elif (found := self._weights.other(other)) and (self._exchanges.at_first or 0) >= self._weights.count:
            self.findings.note(for_cores.unequal_weights(*found, me.rank))

    def _note_input(self, record: dict[str, Any]) -> None:
        """Check how long steps wait for each loader. Steps that compile do not count, since the loader fills its queue
        meanwhile, nor do later passes of a short rehearsal, in which its workers start anew for a batch or two.
        """
        loader = self.loaders.latest
        if record["compile_seconds"] or loader is None or self.loaders.passes.is_late:
            return
        seen = self._input.setdefault(id(loader), _Input())
        seen.steps += 1
        seen.seconds += record["seconds"]
        seen.waited_s += record["input_wait_seconds"]
        if seen.steps < _INPUT_STEPS or seen.waited_s < _INPUT_SECONDS:
            return
        share = seen.waited_s / max(seen.seconds, seen.waited_s)
        if share >= _INPUT_SHARE:
            self.findings.note(advice.input_bound(loader, share, seen.waited_s, seen.steps))
