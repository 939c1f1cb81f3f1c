"""`neuron_parallel_compile` by its module's name."""

from __future__ import annotations

from torch_neuronx._names import resolver

__getattr__ = resolver(__name__, modules=("neuron_parallel_compile",))
