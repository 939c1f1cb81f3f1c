"""Explains why a graph is new: compares its HLO text with that of the closest earlier graph. Pure."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?[\w.-]+ = (\(.*?\)|\S+) ([a-z][\w-]*)\((.*)$")
_METADATA = re.compile(r", metadata=\{[^}]*\}|, to_apply=%?[\w.-]+|, calls=%?[\w.-]+|, channel_id=\d+")
_NAME = re.compile(r"%[\w.-]+")
_LAYOUT = re.compile(r"\{[\d,:]*\}$")
_HEADER = re.compile(r"(buffer_donor|input_output_alias)=\{[^=]*\}")
_ARRAY = re.compile(r"^([a-z][a-z0-9]*)\[([\d,<=]*)\]")

_KEPT = 16
"""How many of the latest graphs a new one is compared with. A loop that makes more has been reported by then."""


class Instruction(NamedTuple):
    """One instruction without its name and operands. ``text``: its constant's value, or its attributes."""

    opcode: str
    shape: str
    text: str


@dataclass(frozen=True)
class Reason:
    """Why a graph is new.

    ``kind``: first | shape | dtype | scalar | control_flow | donation. ``than`` is the hash of the graph
    that it was compared with. ``inputs`` are the changed inputs: number, shape before, shape now.
    """

    kind: str
    detail: str
    than: str | None = None
    inputs: tuple[tuple[int, str, str], ...] = ()


@dataclass(frozen=True)
class Signature:
    """The parts of a graph's text that are compared."""

    instructions: tuple[Instruction, ...]
    opcodes: Counter[str]
    header: str


def signature(hlo_text: str) -> Signature:
    """Read a module's text."""
    lines = hlo_text.splitlines()
    found = []
    # A large model repeats itself: ten thousand instructions are a few hundred different ones.
    once: dict[Instruction, Instruction] = {}
    for line in lines[1:]:
        if not (match := _INSTRUCTION.match(line)):
            continue
        shape, opcode, rest = match.groups()
        rest = _METADATA.sub("", rest)
        operands, _, attributes = rest.rpartition(")")
        text = operands if opcode in ("constant", "parameter") else attributes.strip(", ")
        instruction = Instruction(opcode, _LAYOUT.sub("", shape), _NAME.sub("", text))
        found.append(once.setdefault(instruction, instruction))
    header = " ".join(match[0] for match in _HEADER.finditer(lines[0])) if lines else ""
    return Signature(tuple(found), Counter(instruction.opcode for instruction in found), header)


class Comparer:
    """Remembers the latest graphs and explains each new one."""

    def __init__(self) -> None:
        """No graph is known yet."""
        self._known: OrderedDict[str, tuple[str, Signature]] = OrderedDict()

    def explain(self, graph_hash: str, source: str, hlo_text: str) -> Reason:
        """Why this graph is new. Later graphs are compared with it too."""
        new = signature(hlo_text)
        reason = self._reason(new, source)
        self._known[graph_hash] = (source, new)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return reason

    def _reason(self, new: Signature, source: str) -> Reason:
        if not self._known:
            return Reason("first", "the first graph")

        def distance(known: tuple[str, tuple[str, Signature]]) -> tuple[int, bool]:
            where, earlier = known[1]
            return _operations_apart(earlier, new), where != source

        # Of equally close ones the latest.
        name, (where, earlier) = min(reversed(self._known.items()), key=distance)
        apart = _operations_apart(earlier, new)
        if where != source and apart > 0:
            return Reason("first", f"the first graph of {source}", name)
        if apart:
            return Reason("control_flow", _other_operations(earlier, new), name)
        return _difference(earlier, new, name)


def _operations_apart(earlier: Signature, new: Signature) -> int:
    return sum(((earlier.opcodes - new.opcodes) + (new.opcodes - earlier.opcodes)).values())


def _other_operations(earlier: Signature, new: Signature) -> str:
    """``+3 multiply, -1 add`` and so on, the largest changes first."""
    changes = [(op, new.opcodes[op] - earlier.opcodes[op]) for op in earlier.opcodes | new.opcodes]
    named = sorted((c for c in changes if c[1]), key=lambda change: (-abs(change[1]), change[0]))
    shown = ", ".join(f"{count:+d} {opcode}" for opcode, count in named[:4])
    more = f" and {len(named) - 4} kinds more" if len(named) > 4 else ""
    return f"other operations: {shown}{more}"


def _difference(earlier: Signature, new: Signature, name: str) -> Reason:
    """What differs between graphs with the same number of each operation: inputs first."""
    before, now = _inputs(earlier), _inputs(new)
    changed = tuple((i, before[i], now[i]) for i in sorted(before.keys() & now.keys()) if before[i] != now[i])
    pairs = list(zip(earlier.instructions, new.instructions, strict=False))
    if changed:
        kind = "shape" if any(_dims(was) != _dims(got) for _, was, got in changed) else "dtype"
        shown = ", ".join(f"input {i} was {was} and is {got}" for i, was, got in changed[:3])
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        return Reason(kind, shown + more, name, changed)
    if any(was.opcode != got.opcode for was, got in pairs):
        return Reason("control_flow", "the same operations in another order", name)
    for was, got in pairs:
        if was.opcode == "constant" and was != got:
            return Reason("scalar", f"a constant was {_constant(was)} and is {_constant(got)}", name)
    for was, got in pairs:
        if was.text != got.text:
            detail = f"{was.opcode} with {was.text[:60]} is now with {got.text[:60]}"
            return Reason("scalar", detail, name)
        if was.shape != got.shape:
            kind = "shape" if _dims(was.shape) != _dims(got.shape) else "dtype"
            return Reason(kind, f"{was.opcode} was {was.shape} and is {got.shape}", name)
    if earlier.header != new.header:
        return Reason("donation", "other inputs may be overwritten", name)
    return Reason("control_flow", "the same operations, connected in another way", name)


def _inputs(of: Signature) -> dict[int, str]:
    """Shapes of the entry computation's parameters, by number: it is last in the text, so it overrides others."""
    return {int(i.text): i.shape for i in of.instructions if i.opcode == "parameter" and i.text.isdigit()}


def _dims(shape: str) -> str:
    match = _ARRAY.match(shape)
    return match[2] if match else shape


def _constant(instruction: Instruction) -> str:
    value = instruction.text if len(instruction.text) <= 24 else instruction.text[:24] + "..."
    return f"{value} ({instruction.shape})"
