"""A computation as a graph of values, with everything resolved that only renames or reorders them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from neuron_sim.counters.hlo import opcodes
from neuron_sim.counters.hlo.shapes import Shape, total_bytes
from neuron_sim.counters.hlo.text import Computation, Instruction

_INDEX = re.compile(r"index=(\d+)")
_SLICES = frozenset(("dynamic-slice", "slice"))
_FREE = frozenset(("broadcast",))


class Graph:
    """Values by number, each after its operands; one list per property.

    Attributes:
        opcode: the instruction's; ``reduce`` and ``multiply`` for the two parts of a batch norm.
        operands: numbers of the values it is made of; ``users``: the reverse, without boundaries.
        boundary_users: the boundaries that read it.
        feeds_work: one of these boundaries is not a collective.
        bytes, elements, key: of its array, see `Shape`.
        is_loop: element-wise. ``is_fused``: that, or a reduction. ``is_given``: not computed, as an input.
        is_slice: it reads only as much as it makes.
        vector_elements, scalar_elements: see `fusion.Kernels`.
        wanted: element-wise values that must be in memory: for a boundary, a larger broadcast, or as result.
        unfused_bytes: what the instruction moves as a kernel of its own.
        alone: boundaries whose bytes count as element-wise work, such as random bits.
        transposed_bytes: what transposes move if each instruction is a kernel of its own.
    """

    def __init__(self, computation: Computation) -> None:
        """Resolve the instructions of a computation."""
        self.opcode: list[str] = []
        self.operands: list[tuple[int, ...]] = []
        self.users: list[list[int]] = []
        self.boundary_users: list[list[int]] = []
        self.feeds_work: list[bool] = []
        self.bytes: list[int] = []
        self.elements: list[int] = []
        self.key: list[tuple[int, ...]] = []
        self.is_loop: list[bool] = []
        self.is_fused: list[bool] = []
        self.is_given: list[bool] = []
        self.is_slice: list[bool] = []
        self.vector_elements: list[int] = []
        self.scalar_elements: list[int] = []
        self.wanted: set[int] = set()
        self.alone: list[int] = []
        self.unfused_bytes: list[int] = []
        self._instructions = computation.instructions
        self._values: list[list[int]] = []
        for instruction in computation.instructions:
            self._values.append(self._resolve(instruction))
        if computation.root is not None:
            self._want(self._values[computation.root])
        self.transposed_bytes = self._transposed()

    def __len__(self) -> int:
        return len(self.opcode)

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
            return [self._add(opcode, update.shapes, read, 2 * update.shape.bytes, loop=True, fused=True)]
        read = [value for operand in operands for value in values[operand]]
        if opcode in opcodes.ELEMENTWISE:
            return [self._loop(instruction, read)]
        if opcode == "reduce":
            taken = sum(self._shape(operand).elements for operand in operands[: len(operands) // 2])
            return [self._new(instruction, read, self._moved(instruction), fused=True, vector=taken)]
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
        return self._new(instruction, values, 0, given=True)

    def _repeats_nothing(self, instruction: Instruction) -> bool:
        if instruction.opcode != "broadcast":
            return False
        return self._shape(instruction.operands[0]).elements == instruction.shape.elements

    def _loop(self, instruction: Instruction, read: Sequence[int]) -> int:
        opcode = instruction.opcode
        elements = instruction.shape.elements
        if opcode in _FREE:
            moved = 0
            self._want(read)  # a smaller array, which is not made again for each element
        elif opcode in _SLICES:
            moved = 2 * instruction.shape.bytes
        else:
            moved = self._moved(instruction)
        return self._new(
            instruction,
            read,
            moved,
            loop=True,
            fused=True,
            vector=elements if opcode in opcodes.ARITHMETIC else 0,
            scalar=elements if opcode in opcodes.TRANSCENDENTAL else 0,
        )

    def _norm(self, instruction: Instruction, read: Sequence[int]) -> list[int]:
        """Expand a batch norm to a reduction and an element-wise operation, with their numbers of operations."""
        result, *statistics = instruction.shapes
        data = read[0]
        moved = self._moved(instruction)
        if instruction.opcode == "batch-norm-inference":
            return [
                self._add(
                    "multiply", [result], read, moved, loop=True, fused=True, vector=2 * result.elements
                )
            ]
        if instruction.opcode == "batch-norm-training":
            summed, per_sum, per_result = [data], 2, 2
        else:
            summed, per_sum, per_result = [data, read[2], read[4]], 4, 4
        sums = self._add(
            "reduce", statistics, summed, 0, fused=True, vector=per_sum * result.elements,
            scalar=statistics[0].elements,
        )  # fmt: skip
        normed = self._add(
            "multiply", [result], [*read, sums], moved, loop=True, fused=True,
            vector=per_result * result.elements,
        )  # fmt: skip
        return [normed, sums, sums]

    def _boundary(self, instruction: Instruction, read: Sequence[int]) -> list[int]:
        opcode = instruction.opcode
        if opcode in opcodes.PRODUCTS:
            read = [
                value for operand in instruction.operands for value in self._values[self._in_place(operand)]
            ]
        counted = opcode not in opcodes.UNCOUNTED
        given = opcode in opcodes.GIVEN
        node = self._new(
            instruction,
            read,
            self._moved(instruction) if counted else 0,
            given=given,
            vector=sum(shape.elements for shape in instruction.shapes) if counted else 0,
        )
        if counted:
            self.alone.append(node)
        for value in dict.fromkeys(read):
            self.boundary_users[value].append(node)
            self.feeds_work[value] |= opcode not in opcodes.COLLECTIVES
        self._want(read)
        return [node]

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
        self.wanted.update(value for value in values if self.is_loop[value])

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

    def _new(self, instruction: Instruction, read: Sequence[int], moved: int, **kind: int) -> int:
        return self._add(instruction.opcode, instruction.shapes, read, moved, **kind)

    def _add(
        self,
        opcode: str,
        shapes: Sequence[Shape],
        read: Sequence[int],
        moved: int,
        *,
        loop: int = False,
        fused: int = False,
        given: int = False,
        vector: int = 0,
        scalar: int = 0,
    ) -> int:
        node = len(self.opcode)
        read = tuple(dict.fromkeys(read))
        one = len(shapes) == 1
        self.opcode.append(opcode)
        self.operands.append(read)
        self.users.append([])
        self.boundary_users.append([])
        self.feeds_work.append(False)
        # A scalar constant is part of the instruction.
        self.bytes.append(0 if opcode == "constant" and not shapes[0].dims else total_bytes(tuple(shapes)))
        self.elements.append(shapes[0].elements if shapes else 0)
        self.key.append(shapes[0].key if one else tuple(dim for shape in shapes for dim in shape.key))
        self.is_loop.append(bool(loop))
        self.is_fused.append(bool(fused))
        self.is_given.append(bool(given))
        self.is_slice.append(opcode in _SLICES)
        self.vector_elements.append(vector)
        self.scalar_elements.append(scalar)
        self.unfused_bytes.append(moved)
        if fused:
            for value in read:
                self.users[value].append(node)
        return node
