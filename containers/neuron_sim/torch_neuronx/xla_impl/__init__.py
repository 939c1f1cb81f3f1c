"""Internal modules of torch_neuronx that scripts import all the same."""

from __future__ import annotations

from torch_neuronx._names import resolver

__getattr__ = resolver(__name__, modules=("base", "custom_call_targets", "custom_op", "ops", "trace"))
