"""Finds operations that XLA lacks, which torch_xla runs on the CPU, and their lines.

torch_xla counts them. If an input is pending, its graph must run first, and torch_xla names the line of that. If all
inputs are computed, no graph runs; then the line is noted here, when the operation is called.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import _XLAC

from neuron_sim.counters import script_lines, script_time
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

    def around(self, operation: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate torch_xla's kernel of an operation: count its calls by line."""

        def around(kernel: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(kernel)
            def noted(*arguments: Any, **keywords: Any) -> Any:
                self._count(operation)
                return kernel(*arguments, **keywords)

            return noted

        return around

    @script_time.set_aside
    def _count(self, operation: str) -> None:
        if (line := script_lines.calling_line()) != "?":
            call = operation, line
            self._calls[call] += 1
            if call not in self._libraries:
                self._libraries[call] = script_lines.calling_library()

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
        return for_operations.cpu_fallback(*call, self._calls[call], self._libraries[call])


def _uncalled(name: str, line: str) -> Finding:
    return for_operations.cpu_fallback(name, line, int(_XLAC._xla_counter_value(name) or 0))
