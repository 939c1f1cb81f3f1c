"""`torch.compile(backend="openxla")`: collectives run between compiled graphs, never inside one.

torch_xla traces a function, keeps its graph, and from then on runs only that. A result
that a collective brought from the host while tracing would stay in the graph as a
constant. torch_xla can already leave operations out of its graphs, for those that XLA
lacks; collectives are made to count as such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from neuron_sim.errors import NotSimulatedError

_NAMESPACE = "_c10d_functional"

_phases: list[str] = []
"""What torch_xla is doing, the innermost last."""


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
            _phases.append(phase)
            try:
                return function(*arguments, **keywords)
            finally:
                _phases.pop()

        return call

    return around
