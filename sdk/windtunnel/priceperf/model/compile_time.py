"""Modelled seconds of neuronx-cc for a graph.

Where a rehearsal has counted the operations of a graph, its time follows these: 3 s a graph, 15 ms an operation, and
800 s for each TFLOP of convolutions. The rates are chosen on eleven first compilations that were published, of graphs
that were counted here (calibration/published_compilations.csv). All lie within a factor of 3, which is the interval.
Not in it: the size of the work. AWS says that it counts (aws-neuron-sdk issue 663), and a small MaxViT took more than
45 minutes (issue 646). Single operators have multiplied compile times (issue 1210).

Where operations are not known, of a described job or in older counters, the FLOPs tell less:

- base 7 s: the smaller graph of the MNIST MLP tutorial, compiled from 16:18:05 to 16:18:12
  (aws-neuron-sdk, multi-layer perceptron tutorial). From 2 s to 20 s: one progress dot, which
  is what small graphs print, is at most 20 s.
- rate 190 s a TFLOP: the training step of BERT-Large, phase 1 (16 sequences of 128 tokens,
  4.1 TFLOP), compiled in about 13 minutes (aws-neuron-sdk, BERT pre-training tutorial; three
  such graphs one after the other are its "about 40 minutes"). A quarter and four times that
  rate are the ends of the interval.

- most 1,500 s for one graph: AWS's Llama-3 70B recipe says that the first compilation can add 25 minutes to a job
  (awsome-distributed-training, neuronx-distributed), and the compiler takes repeated layers as modules. A third
  and four times that are the ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import InvalidInput

_FLOPS_PER_TFLOP = 1e12


@dataclass(frozen=True)
class CompileTime:
    """Seconds, with the low and high end of the interval."""

    seconds: float
    low_s: float
    high_s: float

    def __add__(self, other: CompileTime) -> CompileTime:
        """Graphs compile one after the other."""
        return CompileTime(self.seconds + other.seconds, self.low_s + other.low_s, self.high_s + other.high_s)


BASE = CompileTime(7.0, 2.0, 20.0)
"""Seconds of any graph."""
PER_TFLOP = CompileTime(190.0, 47.5, 760.0)
"""Seconds a TFLOP of matrix products and convolutions in one execution of the graph."""
PER_OPERATION_S = 0.015
"""Seconds for each operation of its HLO, where they are known."""
PER_CONVOLVED_TFLOP_S = 800.0
"""Seconds for each TFLOP of convolutions beside."""
_COUNTED_BASE_S = 3.0
"""Seconds of any graph whose operations are known."""
_COUNTED_FACTOR = 3.0
"""From its middle to either end of its interval."""
BASIS = (
    f"{_COUNTED_BASE_S:g} s a graph, {1e3 * PER_OPERATION_S:g} ms an operation and {PER_CONVOLVED_TFLOP_S:g} s a TFLOP "
    f"of convolutions, or where operations are not known {BASE.seconds:g} s and {PER_TFLOP.seconds:g} s a TFLOP: from "
    "published compilations"
)
MOST = CompileTime(1500.0, 500.0, 6000.0)
"""Seconds beyond which no graph goes, however large."""
NOTHING = CompileTime(0.0, 0.0, 0.0)


class CompiledGraph(NamedTuple):
    """A graph as a rehearsal counted it, in one execution on one core.

    ``cached``: it came from the Neuron compile cache. ``operations`` of its HLO, and ``convolved``, the FLOPs of its
    convolutions: None where they were not counted.
    """

    flops: float
    cached: bool = False
    operations: float | None = None
    convolved: float | None = None


def of_graph(graph: CompiledGraph) -> CompileTime:
    """Modelled time for a graph that is not cached.

    Raises:
        InvalidInput: a negative number.
    """
    if not min(graph.flops, graph.operations or 0, graph.convolved or 0) >= 0:
        raise InvalidInput(f"a graph has 0 FLOPs and operations or more, not {graph}")
    if graph.operations is not None and graph.convolved is not None:
        convolving = graph.convolved / _FLOPS_PER_TFLOP * PER_CONVOLVED_TFLOP_S
        middle = min(MOST.seconds, _COUNTED_BASE_S + graph.operations * PER_OPERATION_S + convolving)
        return CompileTime(middle, middle / _COUNTED_FACTOR, middle * _COUNTED_FACTOR)
    size = graph.flops / _FLOPS_PER_TFLOP
    return CompileTime(
        min(MOST.seconds, BASE.seconds + size * PER_TFLOP.seconds),
        min(MOST.low_s, BASE.low_s + size * PER_TFLOP.low_s),
        min(MOST.high_s, BASE.high_s + size * PER_TFLOP.high_s),
    )


def of_graphs(graphs: Iterable[CompiledGraph]) -> CompileTime:
    """Modelled time for those graphs that are not cached, one after the other."""
    return sum((of_graph(graph) for graph in graphs if not graph.cached), NOTHING)
