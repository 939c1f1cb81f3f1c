"""The modelled time of neuronx-cc for a graph.

If a rehearsal counted the graph's operations: 3 s a graph, 15 ms an operation, and 800 s for each TFLOP of
convolutions. The rates were chosen to fit eleven published first compilations, whose graphs were counted in rehearsals
(calibration/published_compilations.csv). All lie within a factor of 3, which is the interval. The size of the other
work is left out, although AWS says that it matters (aws-neuron-sdk issue 663): a small MaxViT took more than
45 minutes (issue 646). Single operators have multiplied compile times (issue 1210).

If operations are not known (a described job, older counters), a less certain rule uses the FLOPs:

- base 7 s: the smaller graph of the MNIST MLP tutorial, compiled from 16:18:05 to 16:18:12
  (aws-neuron-sdk, multi-layer perceptron tutorial). Interval 2 s to 20 s: small graphs print one
  progress dot, which is at most 20 s.
- rate 190 s a TFLOP: the training step of BERT-Large, phase 1 (16 sequences of 128 tokens,
  4.1 TFLOP), compiled in about 13 minutes (aws-neuron-sdk, BERT pre-training tutorial; three
  such graphs one after the other are its "about 40 minutes"). A quarter and four times that
  rate are the ends of the interval.

- at most 1,500 s for one graph: AWS's Llama-3 70B recipe says that the first compilation can add 25 minutes to a job
  (awsome-distributed-training, neuronx-distributed), and the compiler compiles repeated layers once, as modules. A
  third and four times that are the ends of the interval.
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
        """The sum, as for graphs that compile one after the other."""
        return CompileTime(self.seconds + other.seconds, self.low_s + other.low_s, self.high_s + other.high_s)


BASE = CompileTime(7.0, 2.0, 20.0)
"""Seconds of any graph whose operations are not known."""
PER_TFLOP = CompileTime(190.0, 47.5, 760.0)
"""Seconds a TFLOP of matrix products and convolutions in one execution of the graph."""
PER_OPERATION_S = 0.015
"""Seconds for each operation of the graph's HLO, if they are known."""
PER_CONVOLVED_TFLOP_S = 800.0
"""Seconds for each TFLOP of convolutions, if operations are known."""
_COUNTED_BASE_S = 3.0
"""Seconds of any graph whose operations are known."""
_COUNTED_FACTOR = 3.0
"""Factor from the middle to either end of the interval, if operations are known."""
BASIS = (
    f"{_COUNTED_BASE_S:g} s a graph, {1e3 * PER_OPERATION_S:g} ms an operation and {PER_CONVOLVED_TFLOP_S:g} s a TFLOP "
    f"of convolutions, or where operations are not known {BASE.seconds:g} s and {PER_TFLOP.seconds:g} s a TFLOP: from "
    "published compilations"
)
MOST = CompileTime(1500.0, 500.0, 6000.0)
"""The most seconds of one graph, however large."""
NOTHING = CompileTime(0.0, 0.0, 0.0)


class CompiledGraph(NamedTuple):
    """A graph as a rehearsal counted it. ``flops``: of one execution on one core.

    ``cached``: it came from the Neuron compile cache. ``operations``: of its HLO. ``convolved``: the FLOPs of its
    convolutions. None: not counted.
    """

    flops: float
    cached: bool = False
    operations: float | None = None
    convolved: float | None = None


def of_graph(graph: CompiledGraph) -> CompileTime:
    """The modelled time for a graph that is not in the cache.

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
    """The modelled time for all graphs that are not cached, compiled one after the other."""
    return sum((of_graph(graph) for graph in graphs if not graph.cached), NOTHING)
