"""The part of counters.json about compiled graphs; `counters` has the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from ..model.compile_time import CompiledGraph
from .strict_reader import Limits, Shown

MOST_GRAPHS = 1_000_000
"""Upper limit. Assumption: no job compiles more, which is one a second for 11 days."""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why a graph had to be compiled."""

    kind: Shown[str] = "?"
    detail: Shown[str] = ""


@dataclass(frozen=True, kw_only=True)
class LedgerEntry:
    """One compiled graph in the ledger. ``cached``: it came from the Neuron compile cache; None: not checked."""

    graph: Shown[str] = "?"
    runs: Shown[int] = 0
    reason: Shown[Reason | None] = None
    source: Shown[str] = "?"
    compile_seconds: Shown[float] = 0.0
    flops: Mapping[str, float] = field(default_factory=dict)
    bytes_accessed: Shown[float | None] = None
    input_bytes: Shown[float | None] = None
    output_bytes: Shown[float | None] = None
    temp_bytes: Shown[float | None] = None
    instructions: Shown[int | None] = None
    convolution_flops: Shown[float | None] = None
    cached: Shown[bool | None] = None


@dataclass(frozen=True, kw_only=True)
class LargestGraph:
    """The graph with the most FLOPs. ``fp32_products``: the dtype in which the device runs its fp32 products."""

    flops: Shown[float | None] = None
    input_bytes: Shown[float | None] = None
    temp_bytes: Shown[float | None] = None
    fp32_products: str | None = None


@dataclass(frozen=True, kw_only=True)
class Uncut:
    """A graph as trn1 compiles it, not cut at collectives as in the rehearsal. ``cached``: all its pieces came from
    the cache. ``instructions``: of its HLO. None here and for ``convolution_flops``: counters of earlier versions.
    """

    flops: float
    cached: bool
    instructions: float | None = None
    convolution_flops: float | None = None


@dataclass(frozen=True, kw_only=True)
class Graphs:
    """All compiled graphs. ``ledger``: longest compilation first; ``uncut``: most FLOPs first. None: not listed."""

    count: Annotated[int, Limits(0, MOST_GRAPHS)]
    compile_seconds: Shown[float | None] = None
    largest: Shown[LargestGraph | None] = None
    cached: int | None = None
    ledger: Shown[tuple[LedgerEntry, ...] | None] = None
    ledger_left_out: Shown[int] = 0
    uncut: tuple[Uncut, ...] | None = None
    uncut_left_out: Annotated[int, Limits(0, MOST_GRAPHS)] = 0


def compiled_graph(entry: LedgerEntry) -> CompiledGraph:
    """The graph of a ledger entry: only a piece, if the rehearsal cut the graph at its collectives."""
    flops = math.fsum(entry.flops.values())
    return CompiledGraph(flops, entry.cached is True, entry.instructions or None, entry.convolution_flops)


def compiled_graphs(graphs: Graphs) -> tuple[CompiledGraph, ...] | None:
    """The graphs that neuronx-cc compiles: whole ones, although the rehearsal cuts them at collectives.

    Counters of earlier versions have only the pieces. Graphs that are not listed count 0 FLOPs: they are the smallest.
    """
    if graphs.uncut is not None:
        uncut = [
            CompiledGraph(graph.flops, graph.cached, graph.instructions, graph.convolution_flops)
            for graph in graphs.uncut
        ]
        return (*uncut, *[CompiledGraph(0.0)] * graphs.uncut_left_out)
    if graphs.ledger is None:
        return None
    listed = [compiled_graph(item) for item in graphs.ledger]
    left_out = max(0, graphs.count - len(listed))
    cached = min(left_out, max(0, (graphs.cached or 0) - sum(graph.cached for graph in listed)))
    return (*listed, *[CompiledGraph(0.0, True)] * cached, *[CompiledGraph(0.0)] * (left_out - cached))
