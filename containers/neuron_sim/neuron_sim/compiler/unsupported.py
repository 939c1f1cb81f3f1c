"""What neuronx-cc is documented to refuse, as far as a graph's text shows it.

Source: AWS Neuron documentation, "Neuron Graph Compiler error codes" (compiler/error-codes), as of Neuron 2.29, the
last release that trains with PyTorch/XLA. Only refusals that a page states with no condition other than the device, and
that torch_xla's graphs can cause; the compiler has more reasons to fail than these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from neuron_sim import settings, topology

_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = (\(?\S+(?: \S+)*?) ([a-z][\w-]*)\(")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) \(.*\{$")
_SORTED = re.compile(r"%(sort[\w.-]*)\), index=0")
_SLICED = re.compile(r"\bslice\([^%]*%([\w.-]+)\)")
_COMBINED_BY = re.compile(r"\bto_apply=%?([\w.-]+)")
_SOURCE = re.compile(r'source_file="([^"]+)" source_line=(\d+)')
_ATEN = re.compile(r'op_type="(\w+?)__(\w+)"')
_TRIVIAL = ("parameter", "constant", "tuple", "get-tuple-element")
"""Instructions that compute nothing."""
_CUSTOM_CALLS = ("AwsNeuron", "NeuronBoundaryMarker-", "ResizeNearest", "ResizeBilinear")
"""Prefixes of the custom call targets that the compiler recognizes."""
_INVERSE = ("Qr", "ProductOfElementaryHouseholderReflectors")
"""Prefixes of the targets with which torch_xla begins an inverse. It ends with a triangular-solve that `_RULES` leaves
out; NCC_EVRF001 recommends `torch.inverse`."""


@dataclass(frozen=True)
class Instruction:
    """One instruction of a graph. ``aten`` and ``source`` are empty if the graph does not tell.

    ``combines``: the last opcode of the computation that it applies; ``parameter`` if that only overwrites.
    """

    opcode: str
    shape: str
    text: str
    aten: str
    source: str
    combines: str = ""


@dataclass(frozen=True)
class Refusal:
    """An instruction that neuronx-cc refuses, and the documented code and reason."""

    code: str
    reason: str
    instruction: Instruction

    def __str__(self) -> str:
        """The compiler's message, with the instruction."""
        where = f" ({self.instruction.source})" if self.instruction.source else ""
        return f"[{self.code}] {self.reason}: {self.instruction.shape} {self.instruction.opcode}{where}"


@dataclass(frozen=True)
class _Rule:
    """A documented refusal. ``words``: a graph with such an instruction has at least one of them. ``targets``: compiler
    targets that refuse it; empty: all. ``overwrites`` False: not for an instruction that only overwrites. ``of_text``
    False: the pattern is for the text that `instructions` makes, and not for the graph's.
    """

    code: str
    reason: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    targets: tuple[str, ...] = ()
    overwrites: bool = True
    of_text: bool = True

    def may_hold(self, hlo: str) -> bool:
        """Whether a graph may have such an instruction, so that each of its instructions must be looked at."""
        return any(word in hlo for word in self.words) and (
            not self.of_text or self.pattern.search(hlo) is not None
        )

    def holds(self, instruction: Instruction) -> bool:
        """Whether the rule refuses this instruction."""
        if not self.pattern.search(instruction.text):
            return False
        if not self.overwrites and instruction.combines in ("", "parameter"):
            return False
        return not self.targets or _target() in self.targets


_RULES = (
    _Rule(
        "NCC_EVRF004",
        "Complex data types are not supported on the Neuron device",
        ("c64[", "c128["),
        re.compile(r"\bc(64|128)\["),
    ),
    _Rule(
        "NCC_EVRF005",
        "F8E4M3FNUZ, F8E4M3B11FNUZ and F8E5M2FNUZ are not supported",
        ("fnuz[",),
        re.compile(r"\bf8e(4m3|4m3b11|5m2)fnuz\["),
    ),
    _Rule(
        "NCC_EVRF051",
        "Data type F8E4M3FN is not supported on TRN1/TRN2",
        ("f8e4m3fn[",),
        re.compile(r"\bf8e4m3fn\["),
        ("trn1", "trn2"),
    ),
    _Rule(
        "NCC_EVRF001",
        "An unsupported operator was used",
        (" triangular-solve(",),
        re.compile(r"\btriangular-solve\((?!(?:\S+ )?%select\S* (?:\S+ )?%transpose)"),
    ),
    _Rule(
        "NCC_EVRF010",
        "A convolution of a dilated input with a dilated kernel is not supported (the gradient of a convolution with "
        "both stride and dilation is one)",
        (" lhs_dilate=",),
        re.compile(r" convolution\(.*\bwindow=\{[^}]*\blhs_dilate=[^}]*\brhs_dilate="),
    ),
    _Rule(
        "NCC_EVRF011",
        "A convolution with a stride on a dilated input is not supported",
        (" lhs_dilate=",),
        re.compile(r" convolution\(.*\bwindow=\{[^}]*\bstride=[^}]*\blhs_dilate="),
    ),
    _Rule(
        "NCC_EVRF013",
        "TopK does not support int32 or int64 inputs; cast them to a floating-point dtype first",
        (" sort(",),
        re.compile(r" = s(32|64)\[([\d,]*)\]\S* slice\(s\1\[(?!\2\])[\d,]*\]\S* %sort"),
        of_text=False,
    ),
    _Rule(
        "NCC_EVRF015",
        "The target of this custom call is not recognized: neuronx-cc has no such algorithm",
        ("custom_call_target=",),
        re.compile(rf'\bcustom_call_target="(?!{"|".join((*_CUSTOM_CALLS, *_INVERSE))})'),
    ),
    _Rule(
        "NCC_EVRF016",
        "A scatter that reduces (scatter_add, index_add, index_put with accumulate) does not support integers and "
        "booleans; cast them to a floating-point dtype first",
        (" scatter(",),
        re.compile(r" = (pred|[su]\d+)\[\S* scatter\("),
        overwrites=False,
    ),
    _Rule(
        "NCC_EVRF019",
        "A reduce-window of more than one array (cummax is one) is not supported",
        (" reduce-window(",),
        re.compile(r" reduce-window\((?:[^%)]*%){3}"),
    ),
    _Rule(
        "NCC_EVRF022",
        "An arithmetic shift to the right of integers of 8 or 16 bits is not supported; cast them to int32 first",
        (" shift-right-arithmetic(",),
        re.compile(r" = [su](8|16)\[\S* shift-right-arithmetic\("),
    ),
)


def instructions(hlo: str) -> Iterator[Instruction]:
    """The instructions of a graph that compute something, in its order.

    In the text of a slice of sorted values, as in torch_xla's TopK, the operand is replaced by the sort and its shape:
    in XLA's dumps the operand is the tuple's element, without a shape.
    """
    ends: dict[str, str] = {}
    computation = ""
    sorts: dict[str, str] = {}
    for line in hlo.splitlines():
        if header := _COMPUTATION.match(line):
            computation = header[1]
        match = _INSTRUCTION.match(line)
        if match and line.lstrip().startswith("ROOT "):
            ends[computation] = match[3]
        if match and match[3] == "get-tuple-element" and (element := _SORTED.search(line)):
            sorts[match[1]] = f"{match[2]} %{element[1]}"
        if match is None or match[3] in _TRIVIAL:
            continue
        text, _, metadata = line.strip().partition(", metadata=")
        if match[3] == "slice" and sorts:
            text = _SLICED.sub(lambda cut: f"slice({sorts[cut[1]]})" if cut[1] in sorts else cut[0], text)
        aten, source = _ATEN.search(metadata), _SOURCE.search(metadata)
        applied = _COMBINED_BY.search(text)
        yield Instruction(
            match[3],
            match[2],
            text.removeprefix("ROOT "),
            f"{aten[1]}::{aten[2]}" if aten else "",
            f"{source[1].rpartition('/')[2]} {source[2]}" if source else "",
            ends.get(applied[1], "") if applied else "",
        )


def refusal(instruction: Instruction) -> Refusal | None:
    """Why neuronx-cc refuses this instruction, or None."""
    for rule in _RULES:
        if rule.holds(instruction):
            return Refusal(rule.code, rule.reason, instruction)
    return None


def _target() -> str:
    """The compiler's target: that of the job's instance."""
    return topology.instance(settings.compiler_wish().instance_type).compiler_targets[0]


def refusals(hlo: str) -> tuple[Refusal, ...]:
    """Why neuronx-cc refuses this graph: the first instruction for each reason."""
    if not any(rule.may_hold(hlo) for rule in _RULES):
        return ()  # so it is for nearly all graphs, whose instructions need not be looked at one by one
    found: dict[str, Refusal] = {}
    for instruction in instructions(hlo):
        why = refusal(instruction)
        if why is not None:
            found.setdefault(why.code, why)
    return tuple(found.values())
