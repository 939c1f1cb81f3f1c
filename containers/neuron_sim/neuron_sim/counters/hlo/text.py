"""HLO text as computations of instructions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from neuron_sim.counters.hlo.opcodes import COLLECTIVES
from neuron_sim.counters.hlo.shapes import Shape, arrays

_INSTRUCTION = re.compile(r"\s*(ROOT )?%?([\w.-]+) = (\S+(?: \S+)*?) ([a-z][\w-]*)\(")
_COMPUTATION = re.compile(r"(ENTRY )?%?([\w.-]+)(?: \(.*)? \{$")
_OPERAND = re.compile(r"%([\w.-]+)")
_LAYOUT = re.compile(r"entry_computation_layout=\{\((.*)\)->(.*)\}")
_HAVE_EFFECTS = frozenset(("custom-call", "infeed", "outfeed", "recv", "send", *COLLECTIVES))
_WITHOUT_OPERANDS = ("parameter", "constant", "iota")


class Instruction(NamedTuple):
    """One line. ``shapes``: the array that it makes, or those of a tuple; ``operands``: positions of instructions.

    An operand that the text does not define before is left out. ``attributes`` is what follows the operands; of a
    constant, its value.
    """

    opcode: str
    shapes: tuple[Shape, ...]
    operands: tuple[int, ...]
    attributes: str
    is_tuple: bool

    @property
    def shape(self) -> Shape:
        """The array that the instruction makes, or the first of its tuple."""
        return self.shapes[0]


@dataclass(frozen=True)
class Computation:
    """Instructions, each after its operands. ``root``: the position of the result; None where the text names none.

    Instructions that the result does not need are left out, as compilers do: torch_xla writes, for
    example, the gradient of a convolution's input even if the script does not need it.
    """

    instructions: Sequence[Instruction]
    root: int | None


@dataclass(frozen=True)
class Module:
    """The parsed text of a graph. ``inputs`` and ``outputs``: the arrays that its header lists."""

    computations: Mapping[str, Computation]
    entry: Computation
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]


def parse(text: str) -> Module:
    """Read a module's text. Raises ValueError if it is not an HLO module."""
    if not text.startswith("HloModule"):
        raise ValueError(f"not an HLO module: {text[:60]!r}")
    lines = text.splitlines()
    layout = _LAYOUT.search(lines[0])
    computations: dict[str, Computation] = {}
    entry = Computation((), None)
    position = 1
    while position < len(lines):
        line = lines[position]
        position += 1
        if not line.endswith("{") or line[:1].isspace() or not (header := _COMPUTATION.match(line)):
            continue
        end = position
        while end < len(lines) and lines[end] != "}":
            end += 1
        computation = computations[header[2]] = _computation(lines[position:end])
        if header[1]:
            entry = computation
        position = end
    return Module(
        computations, entry, arrays(layout[1]) if layout else (), arrays(layout[2]) if layout else ()
    )


def _computation(lines: Sequence[str]) -> Computation:
    positions: dict[str, int] = {}
    instructions: list[Instruction] = []
    root = None
    for line in lines:
        match = _INSTRUCTION.match(line)
        if match is None:
            continue
        is_root, name, shape_text, opcode = match.groups()
        shapes = arrays(shape_text)
        if opcode in _WITHOUT_OPERANDS:
            operands: tuple[int, ...] = ()
            attributes = line[match.end() : _closing(line, match.end())] if opcode == "constant" else ""
        else:
            start = match.end()
            end = _closing(line, start)
            named = _OPERAND.findall(line, start, end)
            operands = tuple([positions[operand] for operand in named if operand in positions])
            attributes = line[end:]
        if is_root:
            root = len(instructions)
        positions[name] = len(instructions)
        instructions.append(Instruction(opcode, shapes, operands, attributes, shape_text[0] == "("))
    return Computation(instructions, root) if root is None else _alive(instructions, root)


def _alive(instructions: Sequence[Instruction], root: int) -> Computation:
    alive = [False] * len(instructions)
    for position in reversed(range(len(instructions))):
        instruction = instructions[position]
        if position == root or alive[position] or instruction.opcode in _HAVE_EFFECTS:
            alive[position] = True
            for operand in instruction.operands:
                alive[operand] = True
    if all(alive):
        return Computation(instructions, root)
    numbers: dict[int, int] = {}
    kept: list[Instruction] = []
    for position, instruction in enumerate(instructions):
        if alive[position]:
            numbers[position] = len(kept)
            operands = tuple([numbers[operand] for operand in instruction.operands])
            kept.append(instruction._replace(operands=operands))
    return Computation(kept, numbers[root])


def _closing(line: str, start: int) -> int:
    """Where the parenthesis that opened before ``start`` closes."""
    end = line.find(")", start)
    opened = line.count("(", start, end)
    while opened and end >= 0:
        # A tuple's shape stands before the operand's name, in parentheses of its own.
        following = line.find(")", end + 1)
        opened += line.count("(", end + 1, following) - 1
        end = following
    return end if end >= 0 else len(line)
