"""Modelled seconds of neuronx-cc for a graph.

neuronx-cc unrolls a graph into instructions on tiles, so its time follows the size of the
work and not only the number of operations (aws-neuron-sdk issue 663: "Compilation Time is a
Function of Input Size"). The model is a base for any graph and a rate for each TFLOP in it.

Both come from AWS's own figures, not from measurements of ours:

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

One large graph is thin ground, hence the wide interval. Outside of it: convolutional networks
have been reported far slower (aws-neuron-sdk issue 646: more than 45 minutes for a small
MaxViT), and single operators have multiplied compile times (issue 1210).
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
BASIS = (
    f"{BASE.seconds:g} s and {PER_TFLOP.seconds:g} s a TFLOP: "
    "a base and a rate from AWS's MLP and BERT-Large tutorials"
)
MOST = CompileTime(1500.0, 500.0, 6000.0)
"""Seconds beyond which no graph goes, however large."""
NOTHING = CompileTime(0.0, 0.0, 0.0)


class CompiledGraph(NamedTuple):
    """A graph as a rehearsal counted it. ``cached``: it came from the Neuron compile cache."""

    flops: float
    cached: bool = False


def of_graph(flops: float) -> CompileTime:
    """Modelled time for a graph with so many FLOPs in one execution on one core.

    Raises:
        InvalidInput: a negative number.
    """
    if not flops >= 0:
        raise InvalidInput(f"a graph has 0 FLOPs or more, not {flops}")
    size = flops / _FLOPS_PER_TFLOP
    return CompileTime(
        min(MOST.seconds, BASE.seconds + size * PER_TFLOP.seconds),
        min(MOST.low_s, BASE.low_s + size * PER_TFLOP.low_s),
        min(MOST.high_s, BASE.high_s + size * PER_TFLOP.high_s),
    )


def of_graphs(graphs: Iterable[CompiledGraph]) -> CompileTime:
    """Modelled time for those graphs that are not cached, one after the other."""
    return sum((of_graph(graph.flops) for graph in graphs if not graph.cached), NOTHING)
