"""What neuronx-cc is documented to refuse, as far as a graph's text shows it.

Source: AWS Neuron documentation, "Neuron Graph Compiler error codes" (compiler/error-codes).
Only refusals that a page states without condition but the device; the compiler has more reasons
to fail than these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from neuron_sim import settings, topology

_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = (\(?\S+(?: \S+)*?) ([a-z][\w-]*)\(")
_SOURCE = re.compile(r'source_file="([^"]+)" source_line=(\d+)')
_ATEN = re.compile(r'op_type="(\w+?)__(\w+)"')
_TRIVIAL = ("parameter", "constant", "tuple", "get-tuple-element")
"""Instructions that compute nothing."""


@dataclass(frozen=True)
class Instruction:
    """One line of a graph. ``aten`` and ``source`` are empty where the graph does not tell."""

    opcode: str
    shape: str
    text: str
    aten: str
    source: str


@dataclass(frozen=True)
class Refusal:
    """An instruction that neuronx-cc refuses, and the documented code and reason."""

    code: str
    reason: str
    instruction: Instruction

    def __str__(self) -> str:
        """As the compiler words it, with the instruction."""
        where = f" ({self.instruction.source})" if self.instruction.source else ""
        return f"[{self.code}] {self.reason}: {self.instruction.shape} {self.instruction.opcode}{where}"


@dataclass(frozen=True)
class _Rule:
    """``targets``: what it is compiled for where this is refused; empty: any device."""

    code: str
    reason: str
    pattern: re.Pattern[str]
    targets: tuple[str, ...] = ()


_RULES = (
    _Rule(
        "NCC_EVRF004",
        "Complex data types are not supported on the Neuron device",
        re.compile(r"\bc(64|128)\["),
    ),
    _Rule(
        "NCC_EVRF005",
        "F8E4M3FNUZ, F8E4M3B11FNUZ and F8E5M2FNUZ are not supported",
        re.compile(r"\bf8e(4m3|4m3b11|5m2)fnuz\["),
    ),
    _Rule(
        "NCC_EVRF051",
        "Data type F8E4M3FN is not supported on TRN1/TRN2",
        re.compile(r"\bf8e4m3fn\["),
        ("trn1", "trn2"),
    ),
    _Rule("NCC_EVRF001", "An unsupported operator was used", re.compile(r"\btriangular-solve\(")),
)


def instructions(hlo: str) -> Iterator[Instruction]:
    """The instructions of a graph that compute something, in its order."""
    for line in hlo.splitlines():
        match = _INSTRUCTION.match(line)
        if match is None or match[3] in _TRIVIAL:
            continue
        text, _, metadata = line.strip().partition(", metadata=")
        aten, source = _ATEN.search(metadata), _SOURCE.search(metadata)
        yield Instruction(
            match[3],
            match[2],
            text.removeprefix("ROOT "),
            f"{aten[1]}::{aten[2]}" if aten else "",
            f"{source[1].rpartition('/')[2]} {source[2]}" if source else "",
        )


def refusal(instruction: Instruction) -> Refusal | None:
    """Why neuronx-cc refuses this instruction, or None."""
    for rule in _RULES:
        if rule.pattern.search(instruction.text) and (not rule.targets or _target() in rule.targets):
            return Refusal(rule.code, rule.reason, instruction)
    return None


def _target() -> str:
    """What is compiled for: the job's instance."""
    return topology.instance(settings.compiler_wish().instance_type).compiler_targets[0]


def refusals(hlo: str) -> tuple[Refusal, ...]:
    """Why neuronx-cc refuses this graph: the first instruction for each reason."""
    if not any(rule.pattern.search(hlo) for rule in _RULES):
        return ()  # in nearly all graphs, and then there is no need to look at each instruction
    found: dict[str, Refusal] = {}
    for instruction in instructions(hlo):
        why = refusal(instruction)
        if why is not None:
            found.setdefault(why.code, why)
    return tuple(found.values())
