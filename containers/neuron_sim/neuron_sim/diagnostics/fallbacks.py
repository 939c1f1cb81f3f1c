"""Finds operations that XLA lacks, which torch_xla runs on the CPU, and their lines.

torch_xla counts them. If an input is pending, its graph must run first, and torch_xla names the line of that. If all
inputs are computed, no graph runs; then the line is noted here, when the operation is called.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import _XLAC
import torch

from neuron_sim.counters import script_lines, script_time
from neuron_sim.counters.why_new import Reason
from neuron_sim.diagnostics import for_operations
from neuron_sim.diagnostics.findings import Finding

CALLED = tuple(
    f"aten::{name}"
    for name in (
        "nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "bincount", "histc",
        "multinomial", "poisson", "median", "mode", "isin.Tensor_Tensor", "searchsorted.Tensor", "bucketize.Tensor",
        "repeat_interleave.Tensor",
    )
)  # fmt: skip
"""Operations that scripts call on computed values, of a batch or between two steps."""
_ITEM = "aten::_local_scalar_dense"
"""The counter of `.item()`, which is not an operation that XLA lacks."""
_MOST_LINES = 2
_SIZES = re.compile(r"\[([\d,]*)\]")


class Fallbacks:
    """Counts each operation by the line that called it, or on which it was first seen to run on the CPU."""

    def __init__(self) -> None:
        """No such operation has run."""
        self.forget()

    def forget(self) -> None:
        """Count from here on."""
        self._calls: Counter[tuple[str, str]] = Counter()
        """Calls of the operations in `CALLED`, by operation and line."""
        self._libraries: dict[tuple[str, str], str] = {}
        """The library that called the operation there first; empty if the line itself did."""
        self._told: set[tuple[str, str]] = set()
        self._lines: dict[str, str] = {}
        """The lines of other operations."""
        self._sizes: dict[str, tuple[str, str]] = {}
        """By the sizes of a result, as in ``s64[9,1]`` between the brackets: the latest call that gave it."""
        self._graphs: dict[tuple[str, str], tuple[int, float]] = {}
        """By call: graphs that are new because of its sizes, and the seconds that they compiled."""

    def around(self, operation: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate torch_xla's kernel of an operation: count its calls by line."""

        def around(kernel: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(kernel)
            def noted(*arguments: Any, **keywords: Any) -> Any:
                result = kernel(*arguments, **keywords)
                self._count(
                    operation, result, {each.shape for each in arguments if isinstance(each, torch.Tensor)}
                )
                return result

            return noted

        return around

    @script_time.set_aside
    def _count(self, operation: str, result: Any, given: set[torch.Size]) -> None:
        if (line := script_lines.calling_line()) != "?":
            call = operation, line
            self._calls[call] += 1
            if call not in self._libraries:
                self._libraries[call] = script_lines.calling_library()
            if isinstance(result, torch.Tensor):
                result = (result,)
            for each in result:
                if each.shape not in given:  # else it has the sizes of a batch
                    self._sizes[",".join(map(str, each.shape))] = call

    def explains(self, reason: Reason, seconds: float) -> bool:
        """Whether a graph is new only since results of such operations have other sizes: then it is theirs."""
        shapes = [_SIZES.search(shape) for _, *pair in reason.inputs for shape in pair]
        calls = [self._sizes.get(found[1]) if found else None for found in shapes]
        if reason.kind != "shape" or not calls or (call := calls[-1]) is None or None in calls:
            return False
        graphs, before = self._graphs.get(call, (0, 0.0))
        self._graphs[call] = graphs + 1, before + seconds
        return True

    def new(self, accessed: Iterable[str]) -> list[Finding]:
        """Findings of what has run on the CPU for the first time. ``accessed``: lines that torch_xla has named."""
        ran = [name for name in _XLAC._get_executed_fallback_ops() if name != _ITEM]
        called = [call for call in self._calls if call not in self._told and call[0] in ran]
        self._told.update(called)
        known = {*self._lines, *(name for name, _ in self._calls)}
        others = [name for name in ran if name not in known]
        line = ", ".join([line for line in accessed if line != "?"][:_MOST_LINES]) if others else ""
        self._lines.update(dict.fromkeys(others, line or "?"))
        return [*map(self._finding, called), *(_uncalled(name, self._lines[name]) for name in others)]

    def all(self) -> list[Finding]:
        """Findings of all that has run on the CPU, with the current figures."""
        return [
            *(self._finding(call) for call in self._calls if call in self._told),
            *(_uncalled(name, line) for name, line in self._lines.items()),
        ]

    def _finding(self, call: tuple[str, str]) -> Finding:
        graphs, seconds = self._graphs.get(call, (0, 0.0))
        return for_operations.cpu_fallback(
            *call, self._calls[call], self._libraries[call], graphs=graphs, seconds=seconds
        )


def _uncalled(name: str, line: str) -> Finding:
    return for_operations.cpu_fallback(name, line, int(_XLAC._xla_counter_value(name) or 0))
