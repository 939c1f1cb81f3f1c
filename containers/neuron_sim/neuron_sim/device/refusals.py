"""Features of the real device that are refused by name instead of being ignored.

What scripts call is refused where they call it, by the registry of names; what lies below it, for
whoever gets there another way.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import _XLAC
import torch

from neuron_sim import names
from neuron_sim.errors import NotSimulatedError
from neuron_sim.names.torch_xla_names import ONE_PROCESS_A_CORE

_XLAC_FEATURES = {
    "_xla_force_spmd_device": ("SPMD (xr.use_spmd)", ONE_PROCESS_A_CORE),
    "_xla_set_auto_sharding": ("auto-sharding", ONE_PROCESS_A_CORE),
    "_xla_mark_sharding": ("xs.mark_sharding", ONE_PROCESS_A_CORE),
    "_xla_annotate_custom_sharding": ("custom sharding", ONE_PROCESS_A_CORE),
    "_mark_manual_sharding": ("manual sharding", ONE_PROCESS_A_CORE),
    "_xla_tpu_custom_call": ("a TPU custom call", ""),
}

# A collective of the device takes tensors of the device; carried out on the host, it would take any.
_COLLECTIVES = (
    "_xla_all_reduce", "_xla_all_reduce_inplace",
    "_xla_all_gather", "_xla_all_gather_out", "_xla_all_gather_coalesced", "_xla_all_gather_coalesced_out",
    "_xla_reduce_scatter", "_xla_reduce_scatter_out",
    "_xla_reduce_scatter_coalesced", "_xla_reduce_scatter_coalesced_out",
    "_xla_all_to_all", "_xla_collective_permute", "_xla_send", "_xla_recv",
)  # fmt: skip


def install() -> None:
    """Replace each refused entry point by one that raises NotSimulatedError."""
    for name, (feature, instead) in _XLAC_FEATURES.items():
        setattr(_XLAC, name, _refused(feature, instead))
    for name in _COLLECTIVES:
        setattr(_XLAC, name, _of_the_device(getattr(_XLAC, name)))
    for entry in names.every():
        if entry.refused and entry.module.startswith("torch_xla"):
            module = importlib.import_module(entry.module)
            setattr(module, entry.name, _refused(f"{entry.module}.{entry.name}", entry.refused))


def _refused(feature: str, instead: str) -> Any:
    def refused(*arguments: Any, **keywords: Any) -> Any:
        raise NotSimulatedError(feature, instead)

    return refused


def _of_the_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse tensors of the host, in torch_xla's own words."""

    def check(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            if value.device.type != "xla":
                raise RuntimeError(
                    f"Expected XLA tensor. Got: {value.type()}. Move it to the device first: tensor.to('xla')."
                )
        elif isinstance(value, Sequence) and not isinstance(value, str):
            for part in value:
                check(part)

    @functools.wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        for argument in arguments:
            check(argument)
        return function(*arguments, **keywords)

    return call
