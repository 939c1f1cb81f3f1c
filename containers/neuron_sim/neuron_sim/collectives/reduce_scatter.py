"""reduce_scatter: a group's tensors reduced, of which each core gets its part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from neuron_sim.collectives.operation import (
    Groups,
    Operation,
    communicator,
    kernel,
    of_xlac,
    ranks_of,
    reduction_of,
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
            reduced = communicator().reduce_scatter(parts, reduce_type, operation.group)
            results.append(reduced if scale == 1.0 else (reduced * scale).to(host.dtype))
    return results


@of_xlac
def one(
    reduce_type: str, value: torch.Tensor, token: Any, scale: float, *where: Any
) -> tuple[torch.Tensor, Any]:
    """`_xla_reduce_scatter`. ``where``: dimension, count of shards, groups, and what pins layouts and channels."""
    (result,) = _scattered(reduce_type, [value], scale, *where[:3])
    return to_device(result, value), token


@of_xlac
def into(
    reduce_type: str, output: torch.Tensor, value: torch.Tensor, token: Any, scale: float, *where: Any
) -> Any:
    """`_xla_reduce_scatter_out`; ``where``: see `one`."""
    (result,) = _scattered(reduce_type, [value], scale, *where[:3])
    assign(output, result)
    return token


@of_xlac
def several(
    reduce_type: str, values: Sequence[torch.Tensor], token: Any, scale: float, *where: Any
) -> list[Any]:
    """`_xla_reduce_scatter_coalesced`; ``where``: see `one`."""
    results = _scattered(reduce_type, values, scale, *where[:3])
    return [*(to_device(result, value) for result, value in zip(results, values, strict=True)), token]


@of_xlac
def several_into(
    reduce_type: str,
    outputs: Sequence[torch.Tensor],
    values: Sequence[torch.Tensor],
    token: Any,
    scale: float,
    *where: Any,
) -> Any:
    """`_xla_reduce_scatter_coalesced_out`; ``where``: see `one`."""
    results = _scattered(reduce_type, values, scale, *where[:3])
    for output, result in zip(outputs, results, strict=True):
        assign(output, result)
    return token


@kernel(traced=lambda tensor, _, group_size, __: tensor.chunk(group_size)[0].clone())
def functional(tensor: torch.Tensor, reduce_op: str, group_size: int, group_name: str) -> torch.Tensor:
    """`_c10d_functional::reduce_scatter_tensor`."""
    name, scale = reduction_of(reduce_op, group_size)
    (result,) = _scattered(name, [tensor], scale, 0, group_size, [ranks_of(group_name)])
    return to_device(result, tensor)
