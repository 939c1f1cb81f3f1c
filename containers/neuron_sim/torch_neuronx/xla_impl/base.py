"""The older place of what decorates functions that write operations of XLA by themselves."""

from __future__ import annotations

from torch_neuronx._names import resolver

__getattr__ = resolver(__name__, {"xla_hlo_call": "neuron_sim.device.nki"})
