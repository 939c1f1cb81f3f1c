"""reduce_scatter: a group's tensors reduced; each core gets its part of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from neuron_sim.collectives.operation import (
    Groups,
    Operation,
    Tensors,
    as_list,
    kernel,
    of_xlac,
    ranks_of,
    reduction_of,
    scaled,
    variable,
)
from neuron_sim.device.transfer import assign, to_device, to_host


def _scattered(
    reduce_type: str,
    values: Sequence[torch.Tensor],
    scale: float,
    dim: int,
    shard_count: int,
    groups: Groups,
) -> list[torch.Tensor]:
    hosts = to_host(values)
    results = []
    with Operation("reduce_scatter", hosts, groups, f" {reduce_type} dim={dim}") as operation:
        operation.expect_shards(shard_count)
        for host in hosts:
            parts = operation.parts_of(host, dim)
            reduced = operation.communicator.reduce_scatter(parts, reduce_type, operation.group)
            results.append(scaled(reduced, scale))
    return results


@of_xlac
def one_or_several(reduce_type: str, values: Tensors, token: Any, scale: float, *where: Any) -> list[Any]:
    """`_xla_reduce_scatter` and `_xla_reduce_scatter_coalesced`: the results, and the token behind them.

    ``where``: dimension, count of shards, groups, and what pins layouts and channels.
    """
    scattered = _scattered(reduce_type, as_list(values), scale, *where[:3])
    results = list(map(to_device, scattered, as_list(values)))
    if isinstance(values, torch.Tensor):
        variable(results[0], values)
    return [*results, token]


@of_xlac
def into(reduce_type: str, outputs: Tensors, values: Tensors, token: Any, scale: float, *where: Any) -> Any:
    """`_xla_reduce_scatter_out` and `_xla_reduce_scatter_coalesced_out`; ``where``: see `one_or_several`."""
    results = _scattered(reduce_type, as_list(values), scale, *where[:3])
    for output, result in zip(as_list(outputs), results, strict=True):
        assign(output, result)
    return token


@kernel(traced=lambda tensor, _, group_size, __: tensor.chunk(group_size)[0].clone())
def functional(tensor: torch.Tensor, reduce_op: str, group_size: int, group_name: str) -> torch.Tensor:
    """`_c10d_functional::reduce_scatter_tensor`."""
    name, scale = reduction_of(reduce_op, group_size)
    (result,) = _scattered(name, [tensor], scale, 0, group_size, [ranks_of(group_name)])
    return to_device(result, tensor)
