"""A computation as a graph of values, with everything resolved that only renames or reorders them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from neuron_sim.counters.hlo import opcodes
from neuron_sim.counters.hlo.shapes import Shape, total_bytes
from neuron_sim.counters.hlo.text import Computation, Instruction

_INDEX = re.compile(r"index=(\d+)")
_SLICES = frozenset(("dynamic-slice", "slice"))


@dataclass(slots=True)
class Node:
    """A value. Other values are meant by their numbers, which are their places in `Graph.nodes`.

    ``opcode``: the instruction's; ``reduce`` and ``multiply`` for the two parts of a batch norm.
    ``operands``: the values that it is made of; ``users``: the reverse, without boundaries.
    ``boundary_users``: the boundaries that read it; ``feeds_work``: one of these is not a collective.
    ``bytes``, ``elements``, ``key``: of its array, see `Shape`.
    ``is_loop``: element-wise. ``is_fused``: that, or a reduction. ``is_given``: not computed, as an input.
    ``is_slice``: it reads only as much as it makes.
    ``vector_elements``, ``scalar_elements``: see `fusion.Kernels`.
    ``unfused_bytes``: what the instruction moves as a kernel of its own.
    """

    opcode: str
    operands: tuple[int, ...]
    bytes: int
    elements: int
    key: tuple[int, ...]
    is_loop: bool
    is_fused: bool
    is_given: bool
    is_slice: bool
    vector_elements: int
    scalar_elements: int
    unfused_bytes: int
    users: list[int] = field(default_factory=list)
    boundary_users: list[int] = field(default_factory=list)
    feeds_work: bool = False


class Graph:
    """The values of a computation.

    Attributes:
        nodes: each after its operands.
        wanted: element-wise values that a boundary, a broadcast or the graph's result needs.
        alone: boundaries whose bytes count as element-wise work, such as random bits.
        transposed_bytes: what transposes move if each instruction is a kernel of its own.
    """

    def __init__(self, computation: Computation) -> None:
        """Resolve the instructions of a computation."""
        self.nodes: list[Node] = []
        self.wanted: set[int] = set()
        self.alone: list[Node] = []
        self._instructions = computation.instructions
        self._values: list[list[int]] = []
        for instruction in computation.instructions:
            self._values.append(self._resolve(instruction))
        if computation.root is not None:
            self._want(self._values[computation.root])
        self.transposed_bytes = self._transposed()

    def _resolve(self, instruction: Instruction) -> list[int]:
        """The values an instruction stands for: several for a tuple."""
        opcode = instruction.opcode
        operands = instruction.operands
        values = self._values
        if opcode == "tuple":
            return [value for operand in operands for value in values[operand]]
        if opcode == "get-tuple-element" and operands:
            return [self._element(instruction, values[operands[0]])]
        if operands and (opcode in opcodes.VIEWS or self._repeats_nothing(instruction)):
            return values[operands[0]]
        if opcode == "dynamic-update-slice" and self._is_carried(operands[0]):
            # In place, as loops collect the rows of their results: only the update is read and written.
            update = self._instructions[operands[1]]
            read = [value for operand in operands[1:] for value in values[operand]]
            return [self._add(opcode, update.shapes, read, 2 * update.shape.bytes, is_loop=True)]
        read = [value for operand in operands for value in values[operand]]
        if opcode in opcodes.ELEMENTWISE:
            return [self._loop(instruction, read)]
        if opcode == "reduce":
            taken = sum(self._shape(operand).elements for operand in operands[: len(operands) // 2])
            moved = self._moved(instruction)
            return [self._add(opcode, instruction.shapes, read, moved, is_reduction=True, vector=taken)]
        if opcode in ("batch-norm-training", "batch-norm-grad", "batch-norm-inference"):
            return self._norm(instruction, read)
        return self._boundary(instruction, read)

    def _is_carried(self, position: int) -> bool:
        """Whether a loop passes this array from round to round: only the computations of a loop take a tuple."""
        instruction = self._instructions[position]
        if instruction.opcode != "get-tuple-element":
            return False
        return all(self._instructions[source].opcode == "parameter" for source in instruction.operands)

    def _element(self, instruction: Instruction, values: Sequence[int]) -> int:
        index = _INDEX.search(instruction.attributes)
        position = int(index[1]) if index else 0
        if len(values) > 1 and position < len(values):
            return values[position]
        # One of the arrays that a boundary makes.
        return self._add(instruction.opcode, instruction.shapes, values, 0, is_given=True)

    def _repeats_nothing(self, instruction: Instruction) -> bool:
        if instruction.opcode != "broadcast":
            return False
        return self._shape(instruction.operands[0]).elements == instruction.shape.elements

    def _loop(self, instruction: Instruction, read: Sequence[int]) -> int:
        opcode = instruction.opcode
        elements = instruction.shape.elements
        if opcode == "broadcast":
            moved = 0
            self._want(read)  # a smaller array, which is not made again for each element
        elif opcode in _SLICES:
            moved = 2 * instruction.shape.bytes
        else:
            moved = self._moved(instruction)
        return self._add(
            opcode,
            instruction.shapes,
            read,
            moved,
            is_loop=True,
            vector=elements if opcode in opcodes.ARITHMETIC else 0,
            scalar=elements if opcode in opcodes.TRANSCENDENTAL else 0,
        )

    def _norm(self, instruction: Instruction, read: Sequence[int]) -> list[int]:
        """Expand a batch norm to a reduction and an element-wise operation, with their numbers of operations."""
        result, *statistics = instruction.shapes
        data = read[0]
        moved = self._moved(instruction)
        if instruction.opcode == "batch-norm-inference":
            return [self._add("multiply", [result], read, moved, is_loop=True, vector=2 * result.elements)]
        if instruction.opcode == "batch-norm-training":
            summed, per_sum, per_result = [data], 2, 2
        else:
            summed, per_sum, per_result = [data, read[2], read[4]], 4, 4
        sums = self._add(
            "reduce", statistics, summed, 0, is_reduction=True, vector=per_sum * result.elements,
            scalar=statistics[0].elements,
        )  # fmt: skip
        normed = self._add(
            "multiply", [result], [*read, sums], moved, is_loop=True, vector=per_result * result.elements
        )
        return [normed, sums, sums]

    def _boundary(self, instruction: Instruction, read: Sequence[int]) -> list[int]:
        opcode = instruction.opcode
        if opcode in opcodes.PRODUCTS:
            read = [
                value for operand in instruction.operands for value in self._values[self._in_place(operand)]
            ]
        counted = opcode not in opcodes.UNCOUNTED
        number = self._add(
            opcode,
            instruction.shapes,
            read,
            self._moved(instruction) if counted else 0,
            is_given=opcode in opcodes.GIVEN,
            vector=sum(shape.elements for shape in instruction.shapes) if counted else 0,
        )
        node = self.nodes[number]
        if counted:
            self.alone.append(node)
        for value in node.operands:
            self.nodes[value].boundary_users.append(number)
            self.nodes[value].feeds_work |= opcode not in opcodes.COLLECTIVES
        self._want(node.operands)
        return [number]

    def _in_place(self, position: int) -> int:
        """The instruction whose array a product reads: see rule 2 of the fusion model."""
        instruction = self._instructions[position]
        while instruction.operands and (
            instruction.opcode in opcodes.VIEWS or instruction.opcode in opcodes.FOLDED
        ):
            position = instruction.operands[0]
            instruction = self._instructions[position]
        return position

    def _want(self, values: Iterable[int]) -> None:
        self.wanted.update(value for value in values if self.nodes[value].is_loop)

    def _shape(self, position: int) -> Shape:
        return self._instructions[position].shape

    def _moved(self, instruction: Instruction) -> int:
        """Bytes of operands and result; an operand that is a broadcast counts as what it repeats."""
        total = total_bytes(instruction.shapes)
        for operand in dict.fromkeys(instruction.operands):
            source = self._instructions[operand]
            while source.operands and (
                source.opcode == "broadcast" or (source.opcode in opcodes.VIEWS and not source.is_tuple)
            ):
                source = self._instructions[source.operands[0]]
            if source.opcode != "constant":
                total += total_bytes(source.shapes)
        return total

    def _transposed(self) -> int:
        """Bytes of transposes that something other than a product or the result's tuple reads."""
        moved = [False] * len(self._instructions)
        total = 0
        for position in reversed(range(len(self._instructions))):
            instruction = self._instructions[position]
            opcode = instruction.opcode
            if opcode == "transpose" and moved[position]:
                total += 2 * instruction.shape.bytes
            if opcode in opcodes.PRODUCTS or opcode == "tuple":
                continue
            passes_on = opcode in opcodes.VIEWS or opcode in opcodes.FOLDED
            if not passes_on or moved[position]:
                for operand in instruction.operands:
                    moved[operand] = True
        return total

    def _add(
        self,
        opcode: str,
        shapes: Sequence[Shape],
        read: Iterable[int],
        moved: int,
        *,
        is_loop: bool = False,
        is_reduction: bool = False,
        is_given: bool = False,
        vector: int = 0,
        scalar: int = 0,
    ) -> int:
        """Add a value that is made of those it has ``read``; returns its number."""
        number = len(self.nodes)
        operands = tuple(dict.fromkeys(read))
        node = Node(
            opcode,
            operands,
            # A scalar constant is part of the instruction.
            bytes=0 if opcode == "constant" and not shapes[0].dims else total_bytes(tuple(shapes)),
            elements=shapes[0].elements if shapes else 0,
            key=shapes[0].key if len(shapes) == 1 else tuple(dim for shape in shapes for dim in shape.key),
            is_loop=is_loop,
            is_fused=is_loop or is_reduction,
            is_given=is_given,
            is_slice=opcode in _SLICES,
            vector_elements=vector,
            scalar_elements=scalar,
            unfused_bytes=moved,
        )
        self.nodes.append(node)
        if node.is_fused:
            for value in operands:
                self.nodes[value].users.append(number)
        return number
