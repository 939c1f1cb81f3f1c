"""Features of the real device that are refused by name instead of being ignored."""

from __future__ import annotations

from typing import Any

import _XLAC

from neuron_sim.errors import NotSimulatedError

_ONE_PROCESS_A_CORE = "Use one process a core, started by torchrun."

_XLAC_FEATURES = {
    "_xla_force_spmd_device": ("SPMD (xr.use_spmd)", _ONE_PROCESS_A_CORE),
    "_xla_set_auto_sharding": ("auto-sharding", _ONE_PROCESS_A_CORE),
    "_xla_mark_sharding": ("xs.mark_sharding", _ONE_PROCESS_A_CORE),
    "_xla_annotate_custom_sharding": ("custom sharding", _ONE_PROCESS_A_CORE),
    "_mark_manual_sharding": ("manual sharding", _ONE_PROCESS_A_CORE),
    "_xla_tpu_custom_call": ("a TPU custom call", ""),
}


def install() -> None:
    """Replace each refused entry point by one that raises NotSimulatedError."""
    import torch_xla.runtime as xr

    for name, (feature, instead) in _XLAC_FEATURES.items():
        setattr(_XLAC, name, _refused(feature, instead))
    xr.use_spmd = _refused("SPMD (xr.use_spmd)", _ONE_PROCESS_A_CORE)


def _refused(feature: str, instead: str) -> Any:
    def refused(*arguments: Any, **keywords: Any) -> Any:
        raise NotSimulatedError(feature, instead)

    return refused
