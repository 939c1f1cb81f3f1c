"""The older place of `xla_hlo_call`, which decorates functions that write XLA operations themselves."""

from __future__ import annotations

from torch_neuronx._names import resolver

__getattr__ = resolver(__name__, {"xla_hlo_call": "neuron_sim.device.nki"})
