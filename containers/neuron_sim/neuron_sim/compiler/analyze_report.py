"""The report of `neuron_parallel_compile --command analyze`: which operations the compiler supports.

Form: AWS Neuron documentation, "Analyze for Training Tutorial". The percentage is of HLO
instructions. Unsupported are the documented refusals, which `unsupported` knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from neuron_sim.compiler.cache_location import VERSION
from neuron_sim.compiler.unsupported import Instruction, instructions, refusal


def analyze(modules: Iterable[str], verbosity: int = 2) -> dict[str, Any]:
    """The report over the HLO texts of a script's graphs.

    Args:
        modules: each graph once.
        verbosity: 1 adds the HLO instructions, 2 has the aten operators only.
    """
    supported: dict[str, Instruction] = {}
    refused: dict[str, Instruction] = {}
    good = bad = 0
    operators: Counter[str] = Counter()
    for hlo in modules:
        for item in instructions(hlo):
            if refusal(item) is None:
                good += 1
                operators[item.aten or f"xla::{item.opcode}"] += 1
                supported.setdefault(_signature(item), item)
            else:
                bad += 1
                refused.setdefault(f"{item.aten} {item.source} {_signature(item)}", item)
    report: dict[str, Any] = {
        "torch_neuronx_version": VERSION,
        "neuronx_cc_version": VERSION,
        "support_percentage": f"{100 * good / (good + bad) if good + bad else 100:.2f}%",
        "supported_operators": {"aten": dict(sorted(operators.items()))},
        "unsupported_operators": {"aten": _calls(refused.values())},
    }
    if verbosity == 1:
        report["supported_operators"]["xla"] = list(supported)
        report["unsupported_operators"]["xla"] = [
            {"hlo_instruction": _signature(item), "aten_op": item.aten or f"xla::{item.opcode}"}
            for item in refused.values()
        ]
    return report


def _calls(refused: Iterable[Instruction]) -> list[dict[str, str]]:
    """An entry for each refused operator at each line of the script, once."""
    calls = {
        (item.aten or f"xla::{item.opcode}", item.source or "?"): {
            "kind": item.aten or f"xla::{item.opcode}",
            "failureAt": "neuronx-cc",
            "call": item.source or "?",
        }
        for item in refused
    }
    return list(calls.values())


def _signature(item: Instruction) -> str:
    """``f32[4]{0} add(...)``: the instruction without its name."""
    return item.text.partition(" = ")[2]
