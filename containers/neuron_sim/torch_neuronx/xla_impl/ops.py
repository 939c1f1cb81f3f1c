"""Operations for which torch_neuronx has lowerings of its own on the device."""

from __future__ import annotations

from torch_neuronx._names import resolver

_OPERATIONS = ("Argmax", "RmsNorm", "Softmax", "TopK", "set_unload_prior_neuron_models_mode")
_DECORATORS = ("nki_jit", "xla_hlo_call")

__getattr__ = resolver(
    __name__,
    {
        **dict.fromkeys(_OPERATIONS, "neuron_sim.device.neuron_operations"),
        **dict.fromkeys(_DECORATORS, "neuron_sim.device.nki"),
    },
)
