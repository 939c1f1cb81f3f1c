"""`torch.compile(backend="openxla")`: collectives run between compiled graphs, never inside one.

torch_xla traces a function, keeps its graph, and from then on runs only that. A
collective's result comes from the host: got while tracing, it would stay in the graph as
a constant. torch_xla already leaves operations that XLA lacks out of its graphs;
collectives are made to count as such.

AWS does not support this backend ("Introducing PyTorch 2.9 Support": in a future release). Its documentation does not
say how a job fails there, so here it is a finding and not an error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

from neuron_sim.counters import script_lines
from neuron_sim.diagnostics import advice, findings
from neuron_sim.errors import NotSimulatedError

_NAMESPACE = "_c10d_functional"

_phases: list[str] = []
"""The phases of compilation that torch_xla is in (see `during`), the innermost last."""
_told = False
_asked_at = ""
"""The script's line that called torch.compile with torch_xla's backend first; empty if none has."""


def tracing() -> bool:
    """Whether torch_xla is only tracing a function, so that collectives must not run.

    Raises:
        NotSimulatedError: a collective would become part of a graph.
    """
    if "extract" in _phases:
        raise NotSimulatedError(
            "a collective in a function with symbolic sizes under torch.compile(backend='openxla')",
            "Pass dynamic=False to torch.compile.",
        )
    return bool(_phases)


def looking() -> bool:
    """Whether torch_xla is making a graph that it will keep: nothing that changes from run to run may enter it."""
    return bool(_phases)


def around_compile(compile_: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate `torch.compile`, which only notes what to compile at the first call: the finding is of this line."""

    @functools.wraps(compile_)
    def noted(*arguments: Any, **keywords: Any) -> Any:
        global _asked_at
        if not _asked_at and str(keywords.get("backend")).startswith("openxla"):
            _asked_at = script_lines.calling_line()
        return compile_(*arguments, **keywords)

    return noted


def around_run_node(run_node: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate `UnsupportedNodesCollector.run_node`: a collective counts as an operation that XLA lacks."""

    def run_node_apart(self: Any, node: Any) -> Any:
        result = run_node(self, node)
        if getattr(node.target, "namespace", "") == _NAMESPACE and node not in self._unsupported_nodes:
            self._unsupported_nodes.append(node)
        return result

    return run_node_apart


def during(phase: Literal["trace", "extract"]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate the bridge's functions that trace a function ("trace") and that make the graph to keep ("extract")."""

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            _tell()
            _phases.append(phase)
            try:
                return function(*arguments, **keywords)
            finally:
                _phases.pop()

        return call

    return around


def _tell() -> None:
    global _told
    if not _told:
        _told = True
        findings.note(
            advice.torch_compile(script_lines.calling_line() if _asked_at in ("", "?") else _asked_at)
        )
