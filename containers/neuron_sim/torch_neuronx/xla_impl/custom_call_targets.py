"""Names of the operations that only the device has."""

from __future__ import annotations

from torch_neuronx._names import resolver

__getattr__ = resolver(__name__)
