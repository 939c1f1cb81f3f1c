"""Custom C++ operators, compiled for the device's GpSimd engine there and for the host here."""

from __future__ import annotations

from torch_neuronx._names import resolver

__getattr__ = resolver(__name__, dict.fromkeys(("load", "load_library"), "neuron_sim.custom_ops.operators"))
