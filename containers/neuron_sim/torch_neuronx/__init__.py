"""Stands in for AWS's torch_neuronx: traced inference works, and what is not simulated is refused by name.

Names: AWS Neuron documentation, "PyTorch NeuronX tracing API", "data parallel API", "lazy and
asynchronous loading API", "weight replacement API", "NeuronCore placement APIs", "analyze API".
"""

from __future__ import annotations

from neuron_sim import __version__
from neuron_sim.device import nxd_core
from torch_neuronx._names import resolver

_TRACE, _BATCHING, _PLACEMENT = (
    f"neuron_sim.inference.{name}" for name in ("trace", "batching", "placement")
)

_FOUND = {
    "DataParallel": _BATCHING,
    "async_load": _PLACEMENT,
    "dynamic_batch": _BATCHING,
    "lazy_load": _PLACEMENT,
    "move_trace_to_device": _PLACEMENT,
    "multicore_context": _PLACEMENT,
    "neuron_cores_context": _PLACEMENT,
    "replace_weights": _TRACE,
    "set_multicore": _PLACEMENT,
    "set_neuron_cores": _PLACEMENT,
    "trace": _TRACE,
}
_MODULES = ("experimental", "initialization", "parallel_compile", "utils", "xla", "xla_impl")

__all__ = ["__version__"]

__getattr__ = resolver(__name__, _FOUND, _MODULES)

nxd_core.expect()
