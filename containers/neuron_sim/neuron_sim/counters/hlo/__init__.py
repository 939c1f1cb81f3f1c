"""What one execution of a graph costs, read from its HLO text before optimisation.

shapes    element types and sizes
text      the text as computations of instructions
nodes     a computation as a graph of values, without what only renames or reorders them
products  matrix products and convolutions as (batch, rows, inner, columns)
opcodes   classes of instructions: arithmetic, layout, boundary
fusion    which element-wise work runs as one kernel, and the bytes that it moves
work      the sums over a graph
rounding  the text without what simulates stochastic rounding

HLO text: "XLA Operation Semantics" (openxla.org).
"""

from neuron_sim.counters.hlo.rounding import as_rounded
from neuron_sim.counters.hlo.work import Cost, cost

__all__ = ["Cost", "as_rounded", "cost"]
