"""`trace` by its internal name; the stages of neuronx-cc between HLO and NEFF are not here."""

from __future__ import annotations

from torch_neuronx._names import resolver

__getattr__ = resolver(__name__, {"trace": "neuron_sim.inference.trace"})
