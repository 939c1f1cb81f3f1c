"""all_to_all: each core of a group sends each other one a part of its tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from neuron_sim.collectives.operation import (
    Groups,
    Operation,
    expect_dimension,
    kernel,
    of_xlac,
    ranks_of,
    variable,
)
from neuron_sim.device.transfer import to_device, to_host


def _exchanged(
    value: torch.Tensor, split_dimension: int, concat_dimension: int, split_count: int, groups: Groups
) -> torch.Tensor:
    (host,) = to_host([value])
    detail = f" split={split_dimension} concat={concat_dimension}"
    with Operation("all_to_all", [host], groups, detail) as operation:
        operation.expect_shards(split_count)
        expect_dimension(host, concat_dimension)
        received = operation.communicator.all_to_all(
            operation.parts_of(host, split_dimension), operation.group
        )
    return to_device(torch.cat(list(received.unbind(0)), dim=concat_dimension), value)


@of_xlac
def one(
    value: torch.Tensor,
    token: Any,
    split_dimension: int,
    concat_dimension: int,
    split_count: int,
    groups: Groups,
    pin_layout: bool = True,
) -> tuple[torch.Tensor, Any]:
    """`_xla_all_to_all`."""
    result = _exchanged(value, split_dimension, concat_dimension, split_count, groups)
    return variable(result, value), token


@kernel(traced=lambda tensor, *_: tensor.clone())
def functional(
    tensor: torch.Tensor, output_splits: Sequence[int], input_splits: Sequence[int], group_name: str
) -> torch.Tensor:
    """`_c10d_functional::all_to_all_single`."""
    if any(size != 1 for size in (*output_splits, *input_splits)):
        # torch_xla's own refusal, in its own words.
        raise RuntimeError("torch_xla does not support arbitrary split sizes for all_to_all")
    ranks = ranks_of(group_name)
    return _exchanged(tensor, 0, 0, len(ranks), [ranks])
