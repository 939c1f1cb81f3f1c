"""The Neuron profiler measures the device; there is none here."""

from __future__ import annotations

from torch_neuronx._names import resolver

__getattr__ = resolver(__name__)
