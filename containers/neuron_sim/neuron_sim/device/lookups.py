"""Checks the indices of an embedding against its number of rows before the lookup.

For an index outside of the table XLA takes the nearest row, and training goes on. On trn1 the runtime fails such a
step (AWS Neuron documentation, "Neuron Runtime execution fails at out-of-bound access"). Only indices whose values are
on the device are checked, such as a batch; those that the script computes from it there are still pending.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from neuron_sim import settings
from neuron_sim.counters import script_lines, script_time
from neuron_sim.device import transfer
from neuron_sim.errors import OutOfBoundsError


def around_embedding(embedding: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Decorate torch's kernel, whose first argument is the dispatch keyset."""

    @functools.wraps(embedding)
    def held_against_the_table(
        keys: Any, weight: torch.Tensor, indices: torch.Tensor, *others: Any, **named: Any
    ) -> torch.Tensor:
        with script_time.aside():
            _check(weight, indices)
        return embedding(keys, weight, indices, *others, **named)

    return held_against_the_table


def _check(weight: torch.Tensor, indices: torch.Tensor) -> None:
    if type(indices).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ or not indices.numel():
        return  # a tracer's or a wrapper's tensor has no values of its own
    # Profilers and tracers of the script must not see these operations.
    with _disable_current_modes():
        values = transfer.look_at(indices)
        if values is None:
            return
        least, most = (int(value) for value in values.aminmax())
    is_outside = least < 0 or most >= weight.shape[0]
    if is_outside and not settings.compiler_wish().extract_graphs_only:
        outside = least if least < 0 else most
        raise OutOfBoundsError(outside, weight.shape[0], script_lines.calling_line())
