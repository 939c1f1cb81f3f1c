"""What to change in a script before it runs on Trainium: found in its rehearsal, worst first.

    for found in job.diagnostics():
        print(found.severity, found.line, found.message, found.advice)

Counts and seconds are measured here. Seconds of neuronx-cc are modelled, and labelled so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, overload

from windtunnel.priceperf.model import compile_time
from windtunnel.priceperf.workload.counted_graphs import LedgerEntry, Reason, compiled_graph, compiled_graphs
from windtunnel.priceperf.workload.counters import Counters, DeviceMemory, Diagnostic
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.report import Report
from windtunnel.reports.failure import in_short, memory_advice

__all__ = ["Diagnostic", "Diagnostics", "Graph", "diagnostics_of"]

SCHEMA = "windtunnel.diagnostics/2"
_GRAPHS_SHOWN = 15
_IN_REPORT = 5
_MEMORY = (
    ("parameters", "Parameters"),
    ("gradients", "Gradients"),
    ("optimizer_state", "Optimizer state"),
    ("other", "Other tensors"),
    ("temporaries", "Temporaries (activations), as XLA's CPU compiler plans them"),
)


@dataclass(frozen=True)
class Graph:
    """One distinct graph of the rehearsal.

    Attributes:
        hash: torch_xla's hash of the graph.
        source: the user's line that ran it.
        reason: why it was new: ``first``, ``shape``, ``dtype``, ``scalar``, ``control_flow``, ``donation``.
        detail: the reason in words.
        runs: how often it ran.
        compile_seconds: what XLA's CPU compiler took here.
        cached: whether it came from the Neuron compile cache; None where the simulator did not look.
        neuronx_cc: modelled seconds of neuronx-cc with their interval; nothing when it was cached.
        flops: floating-point operations of one execution, by dtype.
    """

    hash: str
    source: str
    reason: str
    detail: str
    runs: int
    compile_seconds: float
    cached: bool | None
    neuronx_cc: compile_time.CompileTime
    flops: Mapping[str, float]


class Diagnostics(Report, Sequence[Diagnostic]):
    """What was found, worst first: a sequence of `Diagnostic` that can also be printed as a report.

    Attributes:
        graphs: the ledger's graphs, those with the longest compilations first.
        compiled: the graphs that neuronx-cc would compile.
        is_joined: whether ``compiled`` joins the graphs that a collective cuts here, but not on trn1; False for
            counters of earlier versions.
        graphs_left_out: how many graphs are not in the ledger.
        device_memory: bytes by use at the fullest moment of a core, ``total`` and ``limit``; None if not counted.
        failure: why the job failed, in a line; empty when it did not.
        memory_advice: how much memory its host had, and what to do, if it ran out of memory; else empty.
        available: False when the job's counters come from a simulator without diagnostics.
    """

    def __init__(self, counters: Counters, reason: str = "") -> None:
        """Built by `diagnostics_of`."""
        self.job = counters.job
        self.failure = in_short(reason)
        self.memory_advice = memory_advice(reason)
        found = counters.found(came_through=not self.failure)
        self.available = found is not None
        self._found = found or ()
        self.graphs = tuple(map(_graph, counters.graphs.ledger or ()))
        self.compiled = compiled_graphs(counters.graphs) or ()
        self.is_joined = counters.graphs.uncut is not None
        self.graphs_left_out = counters.graphs.ledger_left_out
        self.device_memory = counters.device_memory

    @overload
    def __getitem__(self, index: int) -> Diagnostic: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Diagnostic]: ...
    def __getitem__(self, index: int | slice) -> Diagnostic | Sequence[Diagnostic]:
        """The ``index``-th worst."""
        return self._found[index]

    def __len__(self) -> int:
        """How many were found."""
        return len(self._found)

    def __iter__(self) -> Iterator[Diagnostic]:
        """The findings, worst first."""
        return iter(self._found)

    def __repr__(self) -> str:
        """The job's name and how much was found."""
        return f"<Diagnostics of {self.job or 'a job'}: {len(self)} found; print it to read it>"

    def document(self) -> Document:
        return _document(self)

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "job": self.job,
            "failure": self.failure or None,
            "memory_advice": self.memory_advice or None,
            "available": self.available,
            "diagnostics": [asdict(found) for found in self],
            "graphs": [{**asdict(graph), "flops": dict(graph.flops)} for graph in self.graphs],
            "graphs_left_out": self.graphs_left_out,
            "device_memory": None if self.device_memory is None else asdict(self.device_memory),
        }


def diagnostics_of(counters: Mapping[str, Any], reason: str = "") -> Diagnostics:
    """The diagnostics in a job's ``counters.json``. Those of an older simulator are empty, and not `available`.

    ``reason``: the job's FailureReason; empty when it did not fail.

    Raises:
        InvalidCounters: a member is missing or impossible; the message names it.
    """
    return Diagnostics(Counters.read(counters), reason)


def _graph(entry: LedgerEntry) -> Graph:
    reason = entry.reason or Reason()
    modelled = compile_time.of_graphs([compiled_graph(entry)])
    return Graph(
        hash=entry.graph,
        source=entry.source,
        reason=reason.kind,
        detail=reason.detail,
        runs=entry.runs,
        compile_seconds=entry.compile_seconds,
        cached=entry.cached,
        neuronx_cc=modelled,
        flops=entry.flops,
    )


def _document(found: Diagnostics) -> Document:
    """The whole report: findings, graphs, compile time and device memory."""
    sections = [] if found.available and not len(found) else [_what_to_change(found, len(found))]
    if found.graphs:
        sections += [_ledger(found), _modelled(found)]
    if found.device_memory:
        sections.append(_memory(found.device_memory))
    failed = [f"The job failed: {found.failure}"] if found.failure else []
    said = any(one.kind == "device_memory" for one in found)
    failed += [found.memory_advice] if found.memory_advice and not said else []
    return Document(
        f"Windtunnel diagnostics: {found.job or 'counters'}",
        "what to change before Trainium, found on simulated NeuronCores",
        (*failed, _in_all(found)) if found.available else tuple(failed),
        tuple(sections),
    )


def _in_all(found: Diagnostics) -> str:
    if found:
        return f"{len(found)} to look at, worst first."
    if found.failure:
        return "Until then nothing else was found." if found.graphs else "Nothing had run on a NeuronCore."
    return "Nothing to change was found."


def for_report(found: Diagnostics) -> Section | None:
    """The worst few findings, for a job's report; None when nothing was found."""
    return _what_to_change(found, _IN_REPORT) if len(found) else None


def _what_to_change(found: Diagnostics, most: int) -> Section:
    """The findings, a note each, with their lines."""
    notes = [str(one) for one in found[:most]]
    if len(found) > most:
        notes.append(f"and {len(found) - most} more: windtunnel diagnostics {found.job or 'JOB'}")
    if not found.available:
        notes.append(
            "The counters of this job come from an older simulator, without findings: run the job again."
        )
    return Section(
        "What to change", "measured", "worst first; seconds are those of this machine", notes=tuple(notes)
    )


def _ledger(found: Diagnostics) -> Section:
    rows = [_graph_row(graph) for graph in found.graphs[:_GRAPHS_SHOWN]]
    left = len(found.graphs) - len(rows) + found.graphs_left_out
    return Section(
        "Graphs",
        "measured",
        "longest compilation here first",
        ("new because", "runs", "compiled here"),
        tuple(rows),
        (f"and {left} more",) if left else (),
        "line",
    )


def _graph_row(graph: Graph) -> Row:
    cached = ", in the Neuron cache" if graph.cached else ""
    reason = f"{graph.reason}: {graph.detail}" if graph.detail else graph.reason
    return Row(
        f"{graph.source}", (f"{reason}{cached}", f"{graph.runs:,}", fmt.seconds(graph.compile_seconds))
    )


def _modelled(found: Diagnostics) -> Section:
    """The time that neuronx-cc would take."""
    new = sum(not graph.cached for graph in found.compiled)
    time = compile_time.of_graphs(found.compiled)
    return Section(
        "Compiling with neuronx-cc",
        "modelled",
        "from published compilations, wide interval",
        rows=(
            Row("Graphs not in the cache", (f"{new:,} of {len(found.compiled):,}",)),
            Row("neuronx-cc, one after the other", (fmt.modelled_seconds(time.seconds),), "total"),
            Row("interval", (fmt.modelled_span((time.low_s, time.high_s), time.seconds),), "detail"),
        ),
        notes=(
            (
                "A collective cuts a graph in two here. On trn1 it is part of one "
                f"graph{', and is counted so here' if found.is_joined else ', so there are fewer graphs'}."
            ),
        ),
    )


def _memory(sizes: DeviceMemory) -> Section:
    rows = [
        Row(label, (fmt.gibibytes(size),), "detail")
        for name, label in _MEMORY
        if (size := getattr(sizes, name))
    ]
    place = f"At {sizes.line or '?'}, of {fmt.gibibytes(sizes.limit or 0)}"
    rows.append(Row(place, (fmt.gibibytes(sizes.total or 0),), "total"))
    return Section("Device memory of a core", "measured", "at its fullest", rows=tuple(rows))
