"""Which cores share one copy of the model and its batches, by the groups that NxD Core (neuronx_distributed) has made.

Also the configuration of that model, which the counts of one core do not tell.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from neuron_sim import settings
from neuron_sim.counters.modules import parameters as parameters_of

_STATE = "neuronx_distributed.parallel_layers.parallel_state"


def other_copies() -> frozenset[int] | None:
    """Ranks with the same part of the model as this one, itself included; each has its own batches. None: no split."""
    state = _state()
    if state is None:
        return None
    me = settings.identity().rank
    groups: list[list[int]] = state.get_data_parallel_group(as_list=True)
    return frozenset(rank for group in groups if me in group for rank in group) or None


def cores_of_a_copy() -> int:
    """How many cores hold one copy of the model together."""
    copies = other_copies()
    return 1 if copies is None else settings.identity().world_size // len(copies)


def tensor_parallel_cores() -> int:
    """How many cores share each layer of the model."""
    state = _state()
    return 1 if state is None else int(state.get_tensor_model_parallel_size())


def split(
    trained: Iterable[torch.Tensor], modules: Sequence[torch.nn.Module], *, zero1: bool
) -> dict[str, Any] | None:
    """How the cores of a copy share it, and its configuration; None: each has a copy. ``zero1``: state is sharded."""
    state = _state()
    if state is None or cores_of_a_copy() == 1:
        return None
    return {
        "tensor_parallel": tensor_parallel_cores(),
        "pipeline_parallel": int(state.get_pipeline_model_parallel_size()),
        "zero1": zero1,
        "config": _config({id(parameter) for parameter in trained}, modules),
        "lora_rank": _lora_rank(modules),
    }


def _lora_rank(modules: Sequence[torch.nn.Module]) -> int | None:
    """The rank of the LoRA adapters, from PEFT's configuration at the model; None without adapters."""
    for module in modules:
        adapters = vars(module).get("peft_config")
        if isinstance(adapters, dict):
            for each in adapters.values():
                if isinstance(rank := getattr(each, "r", None), int):
                    return rank
    return None


def _config(trained: set[int], modules: Sequence[torch.nn.Module]) -> dict[str, Any] | None:
    """Plain values of the transformers configuration whose modules have the most trained parameters; None without one.

    A pipeline takes the model apart; its attention modules still have the configuration.
    """
    found: dict[int, tuple[int, Any]] = {}
    for module in modules:
        config = vars(module).get("config")  # a property of the script's own may do or raise anything
        if callable(getattr(type(config), "to_dict", None)):
            held = sum(id(parameter) in trained for parameter in parameters_of(module))
            found[id(config)] = max(
                found.get(id(config), (0, None)), (held, config), key=lambda each: each[0]
            )
    held, config = max(found.values(), key=lambda each: each[0], default=(0, None))
    return _plain(config) if held else None


def _plain(config: Any) -> dict[str, Any] | None:
    """The plain values of a configuration; None if it has none, or cannot be read."""
    try:
        values = config.to_dict().items()
        return {
            str(key): value for key, value in values if isinstance(value, str | int | float | bool)
        } or None
    except Exception:  # noqa: BLE001 - it is the script's, and no reason to end a training
        return None


def _state() -> Any:
    """NxD Core's module that knows the groups, once it has made them."""
    state = sys.modules.get(_STATE)
    return state if state is not None and state.model_parallel_is_initialized() else None
