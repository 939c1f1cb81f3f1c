"""Custom C++ operators, compiled for the device's GpSimd engine."""

from __future__ import annotations

from torch_neuronx._names import resolver

__getattr__ = resolver(__name__)
