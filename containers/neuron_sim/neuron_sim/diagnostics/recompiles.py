"""Decides which recompilations are worth a warning: graphs that are new after the loop has warmed up. Pure.

The first steps of a training compile, for example the forward pass once without and once with the optimizer's state.
A line that has run counts as warm after two steps in a row without a new graph: the set-up of a model tells nothing of
its training, nor does that of the first evaluation. A warm line is reported when it has made new graphs for one cause
in a second step. Many new graphs in one step do not mean that this goes on: collectives make one graph of each layer,
with the same operations and other shapes. A line that never gets warm is reported with the fourth such step, or with
the third if the cause is a number in the script's own code that changes in each step, which no warm-up does. With
gradient accumulation all passes up to the optimizer's step are one step: the first, the others and the last have
graphs of their own, with and without state.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from neuron_sim.counters.why_new import Reason
from neuron_sim.diagnostics import for_graphs
from neuron_sim.diagnostics.batch_sizes import Loader
from neuron_sim.diagnostics.findings import Finding

_WARM_AFTER = 2
_AGAIN = 2
"""Steps with a new graph for one cause, after a line was warm. One may be on purpose: another batch size, say."""
_MANY, _MANY_NUMBERS = 4, 3
"""Steps with a new graph for one cause from which on this is neither a warm-up nor other work on the same line. The
second is for a number as the cause, which a short rehearsal of five steps has to find."""
_GROWING = 8
"""How many graphs of one line in one step, each larger than the one before by about as much, are reported. Layers of a
model make about three."""
_ALIKE = 0.1
"""By what share a graph's growth may differ from the one before and count as the same: values change it a little."""
_ACCUMULATED = 64
"""Up to how many passes without an optimizer's step count as gradient accumulation."""


@dataclass
class _Tally:
    """``count``: graphs as trn1 compiles them. ``steps``: in how many steps they came; a step may be many passes."""

    count: int = 0
    seconds: float = 0.0
    steps: int = 0
    latest_step: int = -1
    latest_whole: int | None = None

    def add(self, graph: _New, step: int) -> None:
        if graph.whole is None:
            self.count += 1
        elif graph.whole != self.latest_whole:
            self.latest_whole = graph.whole
            self.count += 1
        self.seconds += graph.seconds
        if step != self.latest_step:
            self.latest_step = step
            self.steps += 1


@dataclass
class _Line:
    """A line that runs graphs. ``since``: the step of its first graph. ``tallies``: by cause; cleared once it is warm.

    ``ragged``: the loader whose smaller batch was the latest when the line ran first; its later graphs need not be of
    that batch.
    """

    since: int
    ragged: Loader | None
    is_warm: bool = False
    tallies: dict[str, _Tally] = field(default_factory=dict)


@dataclass(frozen=True)
class _Row:
    """A row of graphs of one line: the size of the latest, its growth (``more``), the count and seconds of all."""

    instructions: int
    input_bytes: int
    more: int | None = None
    count: int = 1
    seconds: float = 0.0

    def followed_by(self, new: _Row) -> _Row:
        """The row with one more graph, or a new row if that graph has not grown likewise."""
        more, wider = new.instructions - self.instructions, new.input_bytes - self.input_bytes
        if min(more, wider) < 0 or more == wider == 0:
            return new
        alike = self.more is None or abs(more - self.more) <= _ALIKE * max(more, self.more)
        count, seconds = (self.count, self.seconds) if alike else (1, 0.0)
        return replace(new, more=more, count=count + 1, seconds=seconds + new.seconds)


@dataclass(frozen=True)
class _New:
    source: str
    reason: Reason
    seconds: float
    library: str
    loader: Loader | None
    ragged: tuple[Loader, int] | None
    """The loader whose latest batch was a smaller one, and its samples."""
    whole: int | None


class Recompilations:
    """Gets each graph and each step, in their order, and returns findings."""

    def __init__(self) -> None:
        """Nothing has run."""
        self._new: list[_New] = []
        self._steps = 0
        self._accumulated = 0
        self._optimized = 0
        self._quiet = 0
        self._quiet_at = 0
        """The latest step that ended two or more steps in a row without a new graph."""
        self._lines: dict[tuple[str, str], _Line] = {}
        self._ragged: dict[int, _Tally] = {}
        self._varied: dict[int, dict[str, _Tally]] = {}
        """By loader whose batches differ in shape: the script's lines that are reported for it, in that order."""
        self._rows: dict[tuple[str, str], _Row] = {}

    def graph(
        self,
        source: str,
        reason: Reason,
        compile_seconds: float,
        library: str = "",
        *,
        loader: Loader | None = None,
        whole: int | None = None,
    ) -> None:
        """Note a graph that was compiled in the current step, with the latest batch of ``loader``.

        A line that calls a library (`trainer.train()`) has many loops in it: ``library`` tells them apart. ``whole``:
        see `Graph.whole`.
        """
        ragged = (loader, loader.latest) if loader is not None and loader.ragged else None
        self._new.append(_New(source, reason, compile_seconds, library, loader, ragged, whole))

    def grown(
        self, source: str, library: str, instructions: int, input_bytes: int, compile_seconds: float
    ) -> Finding | None:
        """Note the same graph's size. Returns a finding if the step goes on and compiles ever larger graphs."""
        place = (source, library)
        before = self._rows.get(place)
        new = _Row(instructions, input_bytes, seconds=compile_seconds)
        row = self._rows[place] = new if before is None else before.followed_by(new)
        if row.count < _GROWING:
            return None
        return for_graphs.growing_graphs(source, library, row.count, row.seconds)

    def step(self, *, accumulates: bool = False) -> list[Finding]:
        """Note the end of a step. Returns its findings.

        ``accumulates``: it computed gradients, and no optimizer stepped in it.
        """
        self._steps += 1
        self._accumulated = self._accumulated + 1 if accumulates else 0
        if not 0 < self._accumulated < _ACCUMULATED:
            self._optimized += 1
        new, self._new = self._new, []
        self._rows.clear()
        self._quiet = 0 if new else self._quiet + 1
        if self._quiet >= _WARM_AFTER:
            self._quiet_at = self._steps
        return [finding for graph in new if (finding := self._judge(graph)) is not None]

    def _judge(self, graph: _New) -> Finding | None:
        place = (graph.source, graph.library)
        line = self._lines.get(place)
        if line is None:
            self._lines[place] = _Line(self._steps, graph.ragged and graph.ragged[0])
            return None
        reason = graph.reason
        if reason.kind == "first":
            return None
        # A small batch may also lower to other operations: a transpose more, say.
        of_shape = reason.kind in ("shape", "control_flow")
        if of_shape and graph.ragged is not None and graph.ragged[0] is not line.ragged:
            loader, last = graph.ragged
            tally = self._ragged.setdefault(id(loader), _Tally())
            tally.add(graph, self._optimized)
            return for_graphs.ragged_batch(loader, last, tally.count, tally.seconds)
        if not line.is_warm and self._quiet_at > line.since:
            line.is_warm = True
            line.tallies.clear()  # what it compiled to get warm
        tally = line.tallies.setdefault(reason.kind, _Tally())
        tally.add(graph, self._optimized)
        # Evaluation may share a line with training, and a library's function serves many tensors.
        may_be_other_work = graph.library or reason.kind in ("control_flow", "donation")
        many = _MANY_NUMBERS if reason.kind == "scalar" and not graph.library else _MANY
        if tally.steps < (_AGAIN if line.is_warm and not may_be_other_work else many):
            return None
        lines = {graph.source: tally}
        if graph.loader is not None and reason.kind == "shape" and reason.inputs and not graph.library:
            # What is read before a step's end cuts it, and a batch of another shape compiles each piece.
            lines = self._varied.setdefault(id(graph.loader), {})
            lines[graph.source] = tally
        source, *also = lines
        count, seconds = sum(one.count for one in lines.values()), sum(one.seconds for one in lines.values())
        steps = max(one.steps for one in lines.values())
        return for_graphs.recompiles(reason, source, graph.library, count, seconds, steps, self._steps, also)
