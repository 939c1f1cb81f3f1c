"""Diagnostics as sections: what to change, the graph ledger, device memory. Measured and modelled stand apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section

if TYPE_CHECKING:
    from windtunnel.reports.diagnostics.report import Diagnostic, Diagnostics, Graph

_GRAPHS_SHOWN = 15
_IN_REPORT = 5
_MEMORY = (
    ("parameters", "Parameters"),
    ("gradients", "Gradients"),
    ("optimizer_state", "Optimizer state"),
    ("other", "Other tensors"),
    ("temporaries", "Temporaries (activations), as XLA's CPU compiler plans them"),
)


def document(found: Diagnostics) -> Document:
    """All that is known."""
    sections = [what_to_change(found, len(found))]
    if found.graphs:
        sections += [_ledger(found), _modelled(found)]
    if found.device_memory:
        sections.append(_memory(found.device_memory))
    count = len(found)
    headline = (f"{count} to look at, worst first." if count else "Nothing was found to change.",)
    return Document(
        f"Windtunnel diagnostics: {found.job or 'counters'}",
        "what Trainium would tell too late, found on simulated NeuronCores",
        headline if found.available else (),
        tuple(sections),
    )


def for_report(found: Diagnostics) -> Section | None:
    """The worst few, for a job's report; None when there is nothing to say."""
    return what_to_change(found, _IN_REPORT) if len(found) else None


def what_to_change(found: Diagnostics, most: int) -> Section:
    """Each finding with its line: one note each."""
    notes = [_words(one) for one in found[:most]]
    if len(found) > most:
        notes.append(f"and {len(found) - most} more: windtunnel diagnostics {found.job or 'JOB'}")
    if not found.available:
        notes.append("The counters of this job come from a simulator that did not diagnose: run it again.")
    return Section(
        "What to change", "measured", "worst first; seconds are those of this machine", notes=tuple(notes)
    )


def _words(found: Diagnostic) -> str:
    return f"{found.severity}: {found.line}: {found.message} {found.advice}"


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
    """What neuronx-cc would take for the graphs of the ledger."""
    new = [graph for graph in found.graphs if not graph.cached]
    total, low, high = (
        sum(getattr(graph.neuronx_cc, name) for graph in new) for name in ("seconds", "low_s", "high_s")
    )
    return Section(
        "Compiling with neuronx-cc",
        "modelled",
        "from a base and a rate out of AWS's tutorials, wide interval",
        rows=(
            Row("Graphs not in the cache", (f"{len(new):,} of {len(found.graphs):,}",)),
            Row("neuronx-cc, one after the other", (fmt.modelled_seconds(total),), "total"),
            Row("interval", (fmt.interval(fmt.modelled_seconds(low), fmt.modelled_seconds(high)),), "detail"),
        ),
        notes=(
            "A collective cuts a graph in two here; on trn1 it is part of one graph, so there are fewer.",
        ),
    )


def _memory(sizes: Mapping[str, Any]) -> Section:
    rows = [Row(label, (fmt.gibibytes(sizes[name]),), "detail") for name, label in _MEMORY if sizes.get(name)]
    total, limit = sizes.get("total") or 0, sizes.get("limit") or 0
    rows.append(
        Row(f"At {sizes.get('line', '?')}, of {fmt.gibibytes(limit)}", (fmt.gibibytes(total),), "total")
    )
    return Section("Device memory of a core", "measured", "at its fullest", rows=tuple(rows))
