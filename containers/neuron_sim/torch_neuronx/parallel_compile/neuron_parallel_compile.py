"""The command `neuron_parallel_compile`, as scripts call its `main`."""

from __future__ import annotations

from torch_neuronx._names import resolver

__getattr__ = resolver(
    __name__, dict.fromkeys(("LOGGER", "main"), "neuron_sim.tools.neuron_parallel_compile")
)
