"""all_reduce: a group's tensors summed (or multiplied, or the largest taken), on each of its cores."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from neuron_sim.collectives.operation import (
    Groups,
    Operation,
    kernel,
    of_xlac,
    ranks_of,
    reduction_of,
    scaled,
    variable,
)
from neuron_sim.device import malloc, transfer


def _reduced(reduce_type: str, tensor: torch.Tensor, scale: float, groups: Groups) -> torch.Tensor:
    (host,) = transfer.to_host([tensor])
    with Operation("all_reduce", [host], groups, f" {reduce_type}") as operation:
        result = operation.communicator.all_reduce(host, reduce_type, operation.group)
    return transfer.to_device(scaled(result, scale), tensor)


@of_xlac
def one(
    reduce_type: str, tensor: torch.Tensor, scale: float, groups: Groups, pin_layout: bool = True
) -> torch.Tensor:
    """`_xla_all_reduce`."""
    return variable(_reduced(reduce_type, tensor, scale, groups), tensor)


@of_xlac
def in_place(
    reduce_type: str, tensors: Sequence[torch.Tensor], scale: float, groups: Groups, pin_layout: bool = True
) -> None:
    """`_xla_all_reduce_inplace`: a model's gradients."""
    if not tensors:
        return
    hosts = transfer.to_read(tensors)
    results = list(hosts)
    with Operation("all_reduce", hosts, groups, f" {reduce_type}") as operation:
        if sum(host.nbytes for host in hosts) >= malloc.WORTH_BYTES:
            malloc.keep()
        # One transfer per dtype instead of one per tensor: a model has hundreds of gradients.
        for dtype in dict.fromkeys(host.dtype for host in hosts):
            indices = [index for index, host in enumerate(hosts) if host.dtype == dtype]
            flat, parts = transfer.join([hosts[index] for index in indices])
            operation.communicator.all_reduce_(flat, reduce_type, operation.group)
            scaled(flat, scale)
            for index, part in zip(indices, parts, strict=True):
                results[index] = part
    # Views of the device's own memory, to be dropped before anything is computed in it.
    del hosts
    for tensor, result in zip(tensors, results, strict=True):
        transfer.assign(tensor, result, lent=True)


@kernel(traced=lambda tensor, *_: tensor.clone())
def functional(tensor: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    """`_c10d_functional::all_reduce`."""
    ranks = ranks_of(group_name)
    name, scale = reduction_of(reduce_op, len(ranks))
    return _reduced(name, tensor, scale, [ranks])
