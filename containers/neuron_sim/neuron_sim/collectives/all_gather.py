"""all_gather: the tensors of a group side by side, on each of its cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from neuron_sim.collectives.operation import Groups, Operation, Tensors, as_list, kernel, of_xlac, ranks_of
from neuron_sim.device.transfer import assign, to_device, to_host


def _gathered(
    values: Sequence[torch.Tensor], dim: int, shard_count: int, groups: Groups
) -> list[torch.Tensor]:
    hosts = to_host(values)
    with Operation("all_gather", hosts, groups, f" dim={dim}") as operation:
        operation.expect_shards(shard_count)
        gathered = [operation.communicator.all_gather(host, operation.group) for host in hosts]
    return [torch.cat(list(rows.unbind(0)), dim=dim) for rows in gathered]


@of_xlac
def one(
    value: torch.Tensor,
    dim: int,
    shard_count: int,
    groups: Groups,
    pin_layout: bool = True,
    channel_id: int | None = None,
    use_global_device_ids: bool | None = None,
) -> torch.Tensor:
    """`_xla_all_gather`."""
    return to_device(_gathered([value], dim, shard_count, groups)[0], value)


@of_xlac
def several(values: Sequence[torch.Tensor], token: Any, *where: Any) -> list[Any]:
    """`_xla_all_gather_coalesced`. ``where``: dim, shard_count and groups, then whether to pin the layout."""
    results = _gathered(values, *where[:3])
    return [*map(to_device, results, values), token]


@of_xlac
def into(outputs: Tensors, values: Tensors, token: Any, *where: Any) -> Any:
    """`_xla_all_gather_out` and `_xla_all_gather_coalesced_out`; ``where``: see `several`."""
    for output, result in zip(as_list(outputs), _gathered(as_list(values), *where[:3]), strict=True):
        assign(output, result)
    return token


@kernel(traced=lambda tensor, group_size, _: torch.cat([tensor] * group_size))
def functional(tensor: torch.Tensor, group_size: int, group_name: str) -> torch.Tensor:
    """`_c10d_functional::all_gather_into_tensor`."""
    return to_device(_gathered([tensor], 0, group_size, [ranks_of(group_name)])[0], tensor)
