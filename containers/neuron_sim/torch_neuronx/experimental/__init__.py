"""The placement functions, at their older place. Names: AWS Neuron documentation, "NeuronCore placement APIs"."""

from __future__ import annotations

from torch_neuronx._names import resolver

_PLACEMENT = ("multicore_context", "neuron_cores_context", "set_multicore", "set_neuron_cores")

__getattr__ = resolver(__name__, dict.fromkeys(_PLACEMENT, "neuron_sim.inference.placement"), ("profiler",))
