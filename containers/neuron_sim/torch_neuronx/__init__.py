"""Stands where AWS's torch_neuronx stands. What is not simulated is refused by name.

The names of its public API can be imported, so that a script gets as far as its first
use of them; using one raises NotSimulatedError. Names: AWS Neuron documentation,
"PyTorch NeuronX tracing API" and "data parallel API".
"""

from __future__ import annotations

from typing import Any

from neuron_sim import __version__
from neuron_sim.errors import NotSimulatedError

_REFUSED = (
    "DataParallel",
    "async_load",
    "dynamic_batching",
    "lazy_load",
    "move_trace_to_device",
    "trace",
)

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    if name in _REFUSED:

        def refused(*arguments: Any, **keywords: Any) -> Any:
            raise NotSimulatedError(f"torch_neuronx.{name}")

        refused.__name__ = name
        return refused
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotSimulatedError(f"torch_neuronx.{name}")
