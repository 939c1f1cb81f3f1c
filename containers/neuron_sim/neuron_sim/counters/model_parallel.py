"""Which cores share one copy of the model, and its batches: as NxD Core (neuronx_distributed) has made its groups."""

from __future__ import annotations

import sys
from typing import Any

from neuron_sim import settings

_STATE = "neuronx_distributed.parallel_layers.parallel_state"


def other_copies() -> frozenset[int] | None:
    """Ranks with this one's part of the model, this one too: each has other batches. None: nothing is split."""
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
    """How many cores share each layer of this one's."""
    state = _state()
    return 1 if state is None else int(state.get_tensor_model_parallel_size())


def _state() -> Any:
    """NxD Core's module that knows the groups, once it has made them."""
    state = sys.modules.get(_STATE)
    return state if state is not None and state.model_parallel_is_initialized() else None
