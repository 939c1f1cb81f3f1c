"""Names of the Neuron profiler, all refused: it measures the device, and there is none here."""

from __future__ import annotations

from torch_neuronx._names import resolver

__getattr__ = resolver(__name__)
