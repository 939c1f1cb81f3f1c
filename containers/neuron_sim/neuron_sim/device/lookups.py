"""Indices of an embedding, held against its table before the rows are looked up.

XLA takes the nearest row for an index that lies outside, and training goes on with it. On trn1 the runtime ends such a
step (AWS Neuron documentation, "Neuron Runtime execution fails at out-of-bound access"). Looked at is what lies on the
device already, as a batch does; what the script computes there from it is not there yet.
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
    """Around torch's kernel, which gets a keyset first."""

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
    # What records or replaces the script's operations (a profiler, a tracer) is not to meet these.
    with _disable_current_modes():
        values = transfer.look_at(indices)
        if values is None:
            return
        least, most = (int(value) for value in values.aminmax())
    is_outside = least < 0 or most >= weight.shape[0]
    if is_outside and not settings.compiler_wish().extract_graphs_only:
        outside = least if least < 0 else most
        raise OutOfBoundsError(outside, weight.shape[0], script_lines.calling_line())
