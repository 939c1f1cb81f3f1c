"""The cost of a graph: FLOPs, bytes, and the work by class of operation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from neuron_sim.counters.hlo import opcodes, products
from neuron_sim.counters.hlo.fusion import Kernels, elementwise
from neuron_sim.counters.hlo.nodes import Graph
from neuron_sim.counters.hlo.products import Product
from neuron_sim.counters.hlo.shapes import total_bytes
from neuron_sim.counters.hlo.text import Computation, Instruction, Module, parse

_CALLED = re.compile(r"(?:to_apply|calls|body|condition|true_computation|false_computation)=%?([\w.-]+)")
_CONDITION = re.compile(r"condition=%?([\w.-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")


@dataclass
class Work:
    """The work of one execution of a graph, by class of operation.

    ``products``: how often each product runs. ``product_bytes``: their operands and results.
    ``gather_bytes``: indices, and rows read and written. ``scatter_bytes``: indices and updates read, and
    the rows that they change read and written. ``collectives``: count and bytes (of their operands) by name.
    Element-wise work: see `fusion`.
    """

    products: Counter[Product] = field(default_factory=Counter)
    product_bytes: int = 0
    activations: Kernels = field(default_factory=Kernels)
    state: Kernels = field(default_factory=Kernels)
    gather_bytes: int = 0
    scatter_bytes: int = 0
    collectives: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, other: Work, times: int) -> None:
        """Add the work of another one ``times`` times."""
        for product, count in other.products.items():
            self.products[product] += count * times
        self.product_bytes += other.product_bytes * times
        self.activations.add(other.activations, times)
        self.state.add(other.state, times)
        self.gather_bytes += other.gather_bytes * times
        self.scatter_bytes += other.scatter_bytes * times
        for name, use in other.collectives.items():
            mine = self.collectives.setdefault(name, Counter())
            for key, value in use.items():
                mine[key] += value * times

    def _listed(self, products: Iterable[Product]) -> list[list[int | str]]:
        return [[p.batch, p.rows, p.inner, p.columns, p.dtype, self.products[p]] for p in products]

    def record(self) -> dict[str, Any]:
        """The work as the counters have it."""
        return {
            "products": self._listed(self.products),
            "convolutions": self._listed(product for product in self.products if product.convolved),
            "product_bytes": self.product_bytes,
            "elementwise": {"activations": vars(self.activations), "state": vars(self.state)},
            "gather_bytes": self.gather_bytes,
            "scatter_bytes": self.scatter_bytes,
            "collectives": {name: dict(use) for name, use in self.collectives.items()},
        }


@dataclass
class Cost:
    """The cost of one execution of a graph. ``flops``: by dtype of the operands; two per multiply-add.

    ``bytes_accessed``: inputs, outputs, and operands and results of the products, which every
    compiler must move. ``work`` has the rest.
    """

    flops: dict[str, float] = field(default_factory=dict)
    bytes_accessed: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    work: Work = field(default_factory=Work)


def cost(text: str) -> Cost:
    """The cost of the module whose text (before optimisation) this is.

    A computation counts once for each place that calls it, each branch of a condition once, a loop's body as often
    as `_rounds` says. Raises ValueError if it is not an HLO module.
    """
    module = parse(text)
    inputs, outputs = total_bytes(module.inputs), total_bytes(module.outputs)
    given_back = {shape.key for shape in module.inputs} & {shape.key for shape in module.outputs}
    work = _Counting(module, given_back - {()}).of(module.entry)
    flops: Counter[str] = Counter()
    for product, times in work.products.items():
        flops[product.dtype] += product.flops * times
    return Cost(
        {dtype: float(count) for dtype, count in flops.items()},
        inputs + outputs + work.product_bytes,
        inputs,
        outputs,
        work,
    )


class _Counting:
    """The work of a module's computations, each looked at once."""

    def __init__(self, module: Module, state_shapes: set[tuple[int, ...]]) -> None:
        self._module = module
        self._state_shapes = state_shapes
        self._known: dict[str, Work] = {}

    def of(self, computation: Computation) -> Work:
        """The work of a computation and of what it calls."""
        work = Work()
        for instruction in computation.instructions:
            opcode = instruction.opcode
            if opcode in opcodes.PRODUCTS:
                self._product(work, instruction, computation)
            elif opcode in opcodes.GATHERS:
                work.gather_bytes += _bytes(computation, instruction, 1) + 2 * total_bytes(instruction.shapes)
            elif opcode in opcodes.SCATTERS:
                self._scatter(work, instruction, computation)
            elif opcode in opcodes.COLLECTIVES:
                used = work.collectives.setdefault(opcodes.COLLECTIVES[opcode], Counter())
                used["count"] += 1
                used["bytes"] += sum(
                    total_bytes(computation.instructions[o].shapes) for o in instruction.operands
                )
            elif opcode in opcodes.CALLS:
                times = self._rounds(instruction) if opcode == "while" else 1
                for called in _called(instruction.attributes):
                    work.add(self._named(called), times)
        found = elementwise(Graph(computation), self._state_shapes)
        work.activations.add(found.activations)
        work.state.add(found.state)
        return work

    def _named(self, name: str) -> Work:
        if name not in self._known:
            computation = self._module.computations.get(name)
            # HLO has no recursion: a computation is defined before it is called.
            self._known[name] = self.of(computation) if computation is not None else Work()
        return self._known[name]

    def _rounds(self, loop: Instruction) -> int:
        """Rounds of a loop that counts from 0 to a constant, as torch_xla's `scan` (`nn.GRU`) does; of any other: 1."""
        named = _CONDITION.search(loop.attributes)
        condition = self._module.computations.get(named[1]) if named is not None else None
        if condition is None or condition.root is None:
            return 1
        test = condition.instructions[condition.root]
        if test.opcode != "compare" or "direction=LT" not in test.attributes:
            return 1
        limit = condition.instructions[test.operands[-1]]
        is_number = limit.opcode == "constant" and limit.attributes.isdigit()
        return int(limit.attributes) if is_number else 1

    def _product(self, work: Work, instruction: Instruction, computation: Computation) -> None:
        operands = [computation.instructions[operand].shape for operand in instruction.operands]
        shape = products.dot if instruction.opcode == "dot" else products.convolution
        work.products[shape(instruction.shape, operands, instruction.attributes)] += 1
        work.product_bytes += total_bytes((instruction.shape, *operands))

    def _scatter(self, work: Work, instruction: Instruction, computation: Computation) -> None:
        """A scatter's operands are the n arrays that are updated, an array of indices, and n arrays of updates."""
        arrays = (len(instruction.operands) - 1) // 2
        updates = sum(_bytes(computation, instruction, arrays + 1 + n) for n in range(arrays))
        work.scatter_bytes += _bytes(computation, instruction, arrays) + 3 * updates


def _bytes(computation: Computation, instruction: Instruction, position: int) -> int:
    return total_bytes(computation.instructions[instruction.operands[position]].shapes)


def _called(attributes: str) -> list[str]:
    names = _CALLED.findall(attributes)
    if branches := _BRANCHES.search(attributes):
        names += [name.strip().lstrip("%") for name in branches[1].split(",")]
    return names
