"""The package of the module `neuron_parallel_compile`."""

from __future__ import annotations

from torch_neuronx._names import resolver

__getattr__ = resolver(__name__, modules=("neuron_parallel_compile",))
