"""collective_permute: in each pair of cores, the target gets the source's tensor. Broadcast: all get one core's."""

from __future__ import annotations

from typing import Any

import torch

from neuron_sim.collectives.operation import Groups, Operation, kernel, of_xlac, ranks_of, variable
from neuron_sim.device import world
from neuron_sim.device.transfer import to_device, to_host


@of_xlac
def one(value: torch.Tensor, token: Any, pairs: Groups) -> tuple[torch.Tensor, Any]:
    """`_xla_collective_permute`. ``pairs``: (source, target)."""
    (host,) = to_host([value])
    members = sorted({int(rank) for pair in pairs for rank in pair})
    if world.me().rank not in members:
        return variable(to_device(torch.zeros_like(host), value), value), token
    with Operation(
        "collective_permute", [host], [members], f" {[list(pair) for pair in pairs]}"
    ) as operation:
        result = operation.communicator.permute(host, pairs)
    return variable(to_device(result, value), value), token


@kernel(traced=lambda tensor, *_: tensor.clone())
def broadcast(tensor: torch.Tensor, source: int, group_name: str) -> torch.Tensor:
    """`_c10d_functional::broadcast`; ``source`` counts within the group."""
    ranks = ranks_of(group_name)
    (host,) = to_host([tensor])
    with Operation("broadcast", [host], [ranks], f" from {ranks[source]}") as operation:
        result = operation.communicator.permute(host, [[ranks[source], rank] for rank in ranks])
    return to_device(result, tensor)
