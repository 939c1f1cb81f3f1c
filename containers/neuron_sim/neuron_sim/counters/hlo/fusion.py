"""Which element-wise work runs as one kernel, and how many bytes that kernel moves: a model of a fusing compiler.

No compiler is asked. The rules, for each computation:

1. Boundaries compute on their own, from memory to memory: products, convolutions, collectives, gather,
   scatter, sort, random bits, windowed reductions, custom calls, and calls of other computations.
2. Reshapes, bitcasts and transposes move nothing: their reader goes through memory in another order.
   Products also read broadcasts, slices and reversals in place. A NeuronCore pays for some
   transposes (DMA or the matrix engine); that is not counted.
3. Everything else is element-wise, and joins those that produce its operands and consume its result in one
   kernel, as far as nothing between them is a boundary or a reduction. A reduction ends the kernel
   that produces its operand: its own result goes to memory. So a softmax or a norm is two or three kernels.
   A kernel runs as late as its consumers allow.
4. A value that kernels of several stages need is written once and read by each. It is computed again
   in each instead if that moves no more bytes: if it takes no transcendental function, and its inputs
   are at most an eighth larger than the value itself. (Broadcasts, dropout's mask from its random
   bits, a product with its bias.)
5. A kernel reads each array once, and writes what a boundary, another kernel or the graph's result needs.
   Kernels that read the same array but share no value stay apart.
6. batch-norm-training and batch-norm-grad (layer norms too, in torch_xla) are a reduction and an
   element-wise operation each, as compilers expand them.

**State** is work that does not grow with the batch. A kernel is state if (a) all its arrays, scalars aside,
have the dimensions (in any order) of an array that the graph takes in *and* gives back (parameters, their
gradients, the optimizer's state), or are slices of such an array, or slices of an input that are as large as
one; and (b) only kernels of state, and no product, read its results. (b) excludes activations that happen to
have a parameter's dimensions. It does not apply to kernels that read only the graph's inputs and scalars: a
cast of the weights, zeros for a gradient. All other kernels are **activations**, also the gradient of a bias,
which is reduced from activations.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from neuron_sim.counters.hlo import opcodes
from neuron_sim.counters.hlo.nodes import Graph, Node

Kernel = tuple[int, int]
"""A kernel is known by one of its nodes, and the stage."""
Arrays = Mapping[Kernel, set[int]]

_ROUNDS = 2
"""Which values are written depends on which are computed again, and the other way round: so it takes two rounds."""


_ROWS = 1 / 8
"""Smaller inputs of a value (a mask, a bias, a row's mean) are ignored up to this part of the value's size."""


@dataclass
class Kernels:
    """Bytes and elements of one class of element-wise work.

    ``unfused_bytes``: with one kernel for each instruction, as in eager execution.
    ``vector_elements``: elements that arithmetic makes, or that a reduction reads; ``scalar_elements``:
    elements that transcendental functions make. Work that is done again counts once.
    """

    fused_bytes: int = 0
    unfused_bytes: int = 0
    vector_elements: int = 0
    scalar_elements: int = 0

    def add(self, other: Kernels, times: int = 1) -> None:
        """Add the numbers of another one ``times`` times."""
        self.fused_bytes += other.fused_bytes * times
        self.unfused_bytes += other.unfused_bytes * times
        self.vector_elements += other.vector_elements * times
        self.scalar_elements += other.scalar_elements * times


@dataclass
class Elementwise:
    """Element-wise work of a computation."""

    activations: Kernels = field(default_factory=Kernels)
    state: Kernels = field(default_factory=Kernels)


def elementwise(graph: Graph, state_shapes: AbstractSet[tuple[int, ...]]) -> Elementwise:
    """The element-wise work of a computation. ``state_shapes``: `Shape.key` of parameters and the like."""
    stages = _stages(graph.nodes)
    placed: list[frozenset[int]] = []
    written = graph.wanted
    for _ in range(_ROUNDS):
        placed = _place(graph, stages, _cheap_to_repeat(graph.nodes, written))
        written = graph.wanted | {
            number
            for number, node in enumerate(graph.nodes)
            if node.is_loop and any(not placed[user] <= placed[number] for user in node.users)
        }
    return _count(graph, placed, written, state_shapes)


def _stages(nodes: Sequence[Node]) -> list[int]:
    """The largest number of boundaries and reductions on a path to each node."""
    stages: list[int] = []
    after: list[int] = []
    for node in nodes:
        stage = max([after[operand] for operand in node.operands], default=0)
        stages.append(stage)
        after.append(stage if node.is_loop or node.is_given else stage + 1)
    return stages


def _cheap_to_repeat(nodes: Sequence[Node], written: Collection[int]) -> list[bool]:
    """Which values a kernel may compute again: see rule 4."""
    cheap: list[bool] = []
    leaves: list[Collection[int]] = []
    for number, node in enumerate(nodes):
        needed: set[int] = set()
        is_cheap = node.is_loop and node.opcode not in opcodes.TRANSCENDENTAL
        for operand in node.operands if is_cheap else ():
            if node.is_slice:
                needed.add(number)
            elif nodes[operand].is_loop and operand not in written:
                is_cheap = is_cheap and cheap[operand]
                needed.update(leaves[operand])
            else:
                needed.add(operand)
        read = sum(nodes[leaf].bytes for leaf in needed)
        is_cheap = is_cheap and read <= node.bytes * (1 + _ROWS)
        cheap.append(is_cheap)
        leaves.append(needed if is_cheap else (number,))
    return cheap


def _place(graph: Graph, stages: list[int], again: list[bool]) -> list[frozenset[int]]:
    """The stages at which each element-wise value is computed: from its consumers backwards."""
    placed = [frozenset((stage,)) for stage in stages]
    for number in reversed(range(len(graph.nodes))):
        node = graph.nodes[number]
        if not node.is_loop:
            continue
        consumers: set[int] = set()
        for user in node.users:
            consumers |= placed[user]
        if number in graph.wanted:
            # It is written anyway, and later kernels read it.
            consumers |= {stages[user] for user in node.boundary_users}
            placed[number] = frozenset((min(consumers, default=stages[number]),))
        elif again[number] or len(consumers) <= 1:
            placed[number] = frozenset(consumers)
        else:
            placed[number] = frozenset((min(consumers),))
    return placed


def _joins(node: Node, operand: Node) -> bool:
    """Whether the kernel of ``node`` also computes the operand, given that both are computed at one stage.

    What a broadcast repeats (a row's mean, the optimizer's step) is computed in another kernel: otherwise
    all kernels that share it would become one.
    """
    return operand.is_loop and node.opcode != "broadcast"


def _count(
    graph: Graph,
    placed: list[frozenset[int]],
    written: Collection[int],
    state_shapes: AbstractSet[tuple[int, ...]],
) -> Elementwise:
    nodes = graph.nodes
    fused = [(number, node) for number, node in enumerate(nodes) if node.is_fused]
    kernels = _Union()
    for number, node in fused:
        for operand in node.operands:
            if _joins(node, nodes[operand]):
                for stage in placed[number] & placed[operand]:
                    kernels.join((number, stage), (operand, stage))
    reads: dict[Kernel, set[int]] = {}
    writes: dict[Kernel, set[int]] = {}
    members: dict[Kernel, list[Node]] = {}
    for number, node in fused:
        for stage in placed[number]:
            kernel = kernels.find((number, stage))
            read = reads.setdefault(kernel, set())
            for operand in node.operands:
                if not (_joins(node, nodes[operand]) and stage in placed[operand]):
                    # A slice reads only as much as it makes, so its own size counts.
                    read.add(number if node.is_slice else operand)
            if stage == min(placed[number]):
                members.setdefault(kernel, []).append(node)
                if number in written or not node.is_loop:
                    writes.setdefault(kernel, set()).add(number)
    state = _state_kernels(graph, reads, writes, state_shapes)
    result = Elementwise()
    for kernel, read in reads.items():
        counted = result.state if kernel in state else result.activations
        counted.fused_bytes += sum(nodes[number].bytes for number in (*read, *writes.get(kernel, ())))
        for node in members.get(kernel, ()):
            counted.add(Kernels(0, node.unfused_bytes, node.vector_elements, node.scalar_elements))
    for node in graph.alone:
        result.activations.add(Kernels(node.unfused_bytes, node.unfused_bytes, node.vector_elements))
    result.activations.unfused_bytes += graph.transposed_bytes
    return result


def _state_kernels(
    graph: Graph, reads: Arrays, writes: Arrays, state_shapes: AbstractSet[tuple[int, ...]]
) -> set[Kernel]:
    """The kernels that are state, such as the optimizer's."""
    nodes = graph.nodes
    neutral = _of_scalars(nodes, reads, writes)
    fits = _of_state(nodes, state_shapes)
    ignored = {node for kernel in neutral for node in writes.get(kernel, ())} - fits
    shaped = set()
    for kernel, read in reads.items():
        arrays = {node for node in (*read, *writes.get(kernel, ())) if nodes[node].key} - ignored
        if arrays and arrays <= fits:
            shaped.add(kernel)
    of_inputs = {
        kernel
        for kernel in shaped
        if all(_is_given(nodes, nodes[node]) or not nodes[node].key for node in reads[kernel])
    }
    readers: dict[int, list[Kernel]] = {}
    for kernel, read in reads.items():
        for node in read:
            readers.setdefault(node, []).append(kernel)
    writers = {node: kernel for kernel, wrote in writes.items() for node in wrote}
    state = shaped | neutral
    waiting = list(state)
    while waiting:
        kernel = waiting.pop()
        if kernel not in state or kernel in of_inputs:
            continue
        wrote = writes.get(kernel, set())
        if any(nodes[node].feeds_work for node in wrote) or any(
            reader not in state for node in wrote for reader in readers.get(node, ())
        ):
            state.remove(kernel)
            # Kernels that made what it reads have a reader that is not state: look at them again.
            waiting += [writers[node] for node in reads[kernel] if node in writers]
    return state


def _of_state(nodes: Sequence[Node], state_shapes: AbstractSet[tuple[int, ...]]) -> set[int]:
    """The arrays that may be state by their dimensions.

    A slice of DistributedDataParallel's bucket of gradients is one: it has one dimension, and a parameter's size.
    """
    sizes = {math.prod(shape) for shape in state_shapes}

    def is_part(node: Node) -> bool:
        source = nodes[node.operands[0]]
        return source.key in state_shapes or (_is_given(nodes, node) and node.elements in sizes)

    return {
        number
        for number, node in enumerate(nodes)
        if node.key in state_shapes or (node.is_slice and is_part(node))
    }


def _is_given(nodes: Sequence[Node], node: Node) -> bool:
    """Whether a node is an input of the graph, or a slice of one."""
    source = nodes[node.operands[0]] if node.is_slice else node
    return source.opcode in opcodes.GIVEN


def _of_scalars(nodes: Sequence[Node], reads: Arrays, writes: Arrays) -> set[Kernel]:
    """Kernels that read only scalars, or what such kernels have made of them, such as the norm of all gradients."""
    found: set[Kernel] = set()
    made: set[int] = set()
    grown = True
    while grown:
        grown = False
        for kernel, read in reads.items():
            if kernel not in found and all(not nodes[node].key or node in made for node in read):
                found.add(kernel)
                made |= writes.get(kernel, set())
                grown = True
    return found


class _Union:
    """Disjoint sets of kernels that can be joined (union-find)."""

    def __init__(self) -> None:
        self._parent: dict[Kernel, Kernel] = {}

    def find(self, item: Kernel) -> Kernel:
        """The member that identifies the set of ``item``."""
        parent = self._parent
        root = item
        while (above := parent.get(root, root)) != root:
            root = above
        while item != root:
            parent[item], item = root, parent.get(item, item)
        return root

    def join(self, one: Kernel, other: Kernel) -> None:
        """Make two sets one."""
        first, second = self.find(one), self.find(other)
        if first != second:
            self._parent[second] = first
