"""`torch.compile(backend="openxla")`: collectives run between compiled graphs, never inside one.

torch_xla traces a function, keeps its graph, and from then on runs only that. A result
that a collective brought from the host while tracing would stay in the graph as a
constant. torch_xla can already leave operations out of its graphs, for those that XLA
lacks; collectives are made to count as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from neuron_sim.errors import NotSimulatedError

_NAMESPACE = "_c10d_functional"

_tracing = False
_extracting = False


def tracing() -> bool:
    """Whether torch_xla is only looking at a function, and collectives must not take place.

    Raises:
        NotSimulatedError: a collective would become part of a graph.
    """
    if _extracting:
        raise NotSimulatedError(
            "a collective in a function with symbolic sizes under torch.compile(backend='openxla')",
            "Pass dynamic=False to torch.compile.",
        )
    return _tracing


def looking() -> bool:
    """Whether torch_xla is making a graph that it will keep: nothing that changes from run to run may enter it."""
    return _tracing or _extracting


def around_run_node(run_node: Callable[..., Any]) -> Callable[..., Any]:
    """Around `UnsupportedNodesCollector.run_node`: a collective counts as what XLA lacks."""

    def run_node_apart(self: Any, node: Any) -> Any:
        result = run_node(self, node)
        if getattr(node.target, "namespace", "") == _NAMESPACE and node not in self._unsupported_nodes:
            self._unsupported_nodes.append(node)
        return result

    return run_node_apart


def while_tracing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Around the part of the bridge that only looks at a function."""
    return _within(_trace, function)


def while_extracting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Around the part of the bridge that makes the graph that is kept."""
    return _within(_extract, function)


def _within(phase: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **keywords: Any) -> Any:
        with phase():
            return function(*arguments, **keywords)

    return call


@contextmanager
def _trace() -> Iterator[None]:
    global _tracing
    before, _tracing = _tracing, True
    try:
        yield
    finally:
        _tracing = before


@contextmanager
def _extract() -> Iterator[None]:
    global _extracting
    before, _extracting = _extracting, True
    try:
        yield
    finally:
        _extracting = before
