"""The simulator's diagnoses for counters.json: compiled graphs and why they are new, device memory, findings.

All lists are bounded, so that a job which compiles at every step cannot make an endless document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from windtunnel.priceperf.workload.counted_graphs import Graphs, LargestGraph, LedgerEntry, Uncut
from windtunnel.priceperf.workload.counters import SEVERITIES, DeviceMemory, Diagnostic, worst_first
from windtunnel.priceperf.workload.strict_reader import MOST_COUNTED, read
from windtunnel_local.service.observed.counter_records import Record, number, numbers, summed, text
from windtunnel_local.service.observed.graph_work import convolution_flops

MOST_GRAPHS = 100
MOST_FINDINGS = 50


def graphs(compiled: Mapping[str, Record], steps: Sequence[Record], uncut: Sequence[Record]) -> Graphs:
    """The graphs compiled: their number, a list with the longest compilations first, the one with most FLOPs.

    ``cached`` is None if the simulator did not check the cache. ``uncut``: records of which graphs are pieces of one
    graph of trn1.
    """
    runs = summed(steps, "graphs")
    ranked = sorted(compiled, key=lambda name: -number(compiled[name], "compile_seconds"))
    known = [graph["cached"] for graph in compiled.values() if isinstance(graph.get("cached"), bool)]
    joined = sorted(_joined(compiled, uncut), key=lambda graph: -graph.flops)
    largest = max(compiled.values(), key=_flops, default=None)
    return Graphs(
        count=len(compiled),
        compile_seconds=sum(number(graph, "compile_seconds") for graph in compiled.values()),
        largest=None if largest is None else _largest(largest),
        cached=sum(known) if known else None,
        ledger=tuple(
            read(
                LedgerEntry,
                {
                    **compiled[name],
                    "graph": name,
                    "runs": runs[name],
                    "convolution_flops": convolution_flops(compiled[name]),
                },
            )
            for name in ranked[:MOST_GRAPHS]
        ),
        ledger_left_out=max(0, len(ranked) - MOST_GRAPHS),
        uncut=tuple(joined[:MOST_GRAPHS]) or None,
        uncut_left_out=max(0, len(joined) - MOST_GRAPHS),
    )


def _largest(graph: Record) -> LargestGraph:
    told = {"flops": _flops(graph), "fp32_products": text(graph, "fp32_products")}
    return read(LargestGraph, {**graph, **told})


def _joined(compiled: Mapping[str, Record], records: Sequence[Record]) -> Iterable[Uncut]:
    """Each uncut graph once. A restarted job records it again; the first record counts, before it was in the cache."""
    seen = {frozenset(numbers(record, "pieces").items()) for record in records}
    for pieces in seen:
        known = [(compiled[name], runs) for name, runs in pieces if name in compiled and runs > 0]
        if known:
            yield Uncut(
                flops=_of_all(known, _flops) or 0.0,
                cached=all(graph.get("cached") is True for graph, _ in known),
                instructions=_of_all(known, lambda graph: number(graph, "instructions") or None),
                convolution_flops=_of_all(known, convolution_flops),
            )


def _of_all(pieces: Sequence[tuple[Record, float]], told: Callable[[Record], float | None]) -> float | None:
    """The sum over pieces, times their runs; None if a record lacks the value, as those of older simulators do."""
    total = 0.0
    for graph, runs in pieces:
        count = told(graph)
        if count is None or count < 0:
            return None
        total += count * runs
    return min(total, MOST_COUNTED)


def device_memory(records: Iterable[Record]) -> DeviceMemory | None:
    """The bytes by kind of use, at the moment and on the core where most were in use; None if no core recorded any."""
    fullest = max(records, key=lambda record: number(record, "total"), default=None)
    return None if fullest is None else read(DeviceMemory, fullest)


def findings(records: Iterable[Record]) -> tuple[Diagnostic, ...]:
    """The findings, worst first. If a finding has several records, the last counts: it has the final numbers."""
    last: dict[tuple[Any, ...], Diagnostic] = {}
    for record in records:
        if record.get("severity") in SEVERITIES:
            found = read(Diagnostic, {**record, "kind": record.get("finding")})
            last[found.kind, found.line, text(record, "cause")] = found
    return worst_first(last.values())[:MOST_FINDINGS]


def _flops(graph: Record) -> float:
    return float(sum(numbers(graph, "flops").values()))
