"""`torch.compile(backend="openxla")`: collectives run between compiled graphs, never inside one.

torch_xla traces a function, keeps its graph, and from then on runs only that. A result
that a collective brought from the host while tracing would stay in the graph as a
constant. torch_xla can already leave operations out of its graphs, for those that XLA
lacks; collectives are made to count as such.

AWS does not support it ("Introducing PyTorch 2.9 Support": in a future release). How it fails there is not written, so
it is a finding, and no error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from neuron_sim.counters import script_lines
from neuron_sim.diagnostics import advice
from neuron_sim.diagnostics.findings import Finding
from neuron_sim.errors import NotSimulatedError

_NAMESPACE = "_c10d_functional"

_phases: list[str] = []
"""What torch_xla is doing, the innermost last."""
_note: Callable[[Finding], None]
_told = False


def start(note: Callable[[Finding], None]) -> None:
    """What is to be told of it."""
    global _note
    _note = note


def tracing() -> bool:
    """Whether torch_xla is only looking at a function, and collectives must not take place.

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


def around_run_node(run_node: Callable[..., Any]) -> Callable[..., Any]:
    """Around `UnsupportedNodesCollector.run_node`: a collective counts as what XLA lacks."""

    def run_node_apart(self: Any, node: Any) -> Any:
        result = run_node(self, node)
        if getattr(node.target, "namespace", "") == _NAMESPACE and node not in self._unsupported_nodes:
            self._unsupported_nodes.append(node)
        return result

    return run_node_apart


def during(phase: Literal["trace", "extract"]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Around the parts of the bridge that look at a function, and that make the graph that is kept."""

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
        _note(advice.torch_compile(script_lines.calling_line()))
