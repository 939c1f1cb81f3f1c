"""Collectives of `torch_xla._XLAC`, carried out between the simulated cores.

On trn1 a collective is part of the graph. Here it ends the pending graph: the
inputs are computed, combined on the host, and come back as new device data. The
counters add the parts up as the one step that trn1 would run.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import _XLAC
import torch

from neuron_sim import settings
from neuron_sim.collectives.communicator import Communicator
from neuron_sim.counters import recorder, script
from neuron_sim.device import world
from neuron_sim.errors import NotSimulatedError

Groups = Sequence[Sequence[int]]
Token = Any

_current: settings.Settings
_communicator: Communicator | None = None
_library: torch.library.Library | None = None


def install(current: settings.Settings) -> None:
    """Replace torch_xla's own collectives."""
    global _current, _library
    _current = current
    for name, function in _FUNCTIONS.items():
        setattr(_XLAC, name, function)
    # `xm.all_reduce` of one tensor goes through c10d's functional op, not through _XLAC.
    _library = torch.library.Library("_c10d_functional", "IMPL")
    with warnings.catch_warnings():
        # torch warns of every replaced kernel; replacing it is what we are here for.
        warnings.filterwarnings("ignore", message=r"(?s).*[Oo]verrid", category=UserWarning)
        _library.impl("all_reduce", _functional_all_reduce, "XLA", allow_override=True)


def communicator() -> Communicator:
    """This core's communicator; made at the first collective, when the rank is known."""
    global _communicator
    if _communicator is None:
        _communicator = Communicator(
            world.me(), _current.shared_memory_mib * 2**20, _current.collective_timeout_s
        )
    return _communicator


# --- between device and host -------------------------------------------------


def _to_host(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Compute all that is pending, and copy these tensors to the host.

    All live tensors are computed, not only these: whatever depends on the same
    graph (the loss, say) would otherwise be computed a second time later.
    """
    device = _XLAC._xla_get_default_device()
    _XLAC._xla_sync_live_tensors(str(device), [], True)
    return list(_XLAC._xla_get_cpu_tensors([tensor.detach() for tensor in tensors]))


def _to_device(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return tensor.to(like.device)


def _assign(target: torch.Tensor, value: torch.Tensor) -> None:
    with torch.no_grad():
        target.copy_(_to_device(value, target))


class _Operation:
    """Agreement, timing and counting around one collective."""

    def __init__(
        self, name: str, tensors: Sequence[torch.Tensor], groups: Groups | None, detail: str = ""
    ) -> None:
        self._name = name
        self._bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        self.group = communicator().group_of(groups)
        shapes = "+".join(f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}" for t in tensors[:8])
        more = f" and {len(tensors) - 8} more" if len(tensors) > 8 else ""
        self._what = f"{name}{detail} of {shapes}{more} ({self._bytes} bytes)"
        self._started = 0.0

    def __enter__(self) -> _Operation:
        self._started = time.perf_counter()
        if len(self.group) > 1:
            communicator().agree(self.group, f"{self._what} at {script.calling_line()}")
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            recorder.collective(self._name, self._bytes, time.perf_counter() - self._started)


def _reduce_one(reduce_type: str, host: torch.Tensor, scale: float, group: list[int]) -> torch.Tensor:
    result = communicator().all_reduce(host, reduce_type, group)
    return result if scale == 1.0 else (result * scale).to(host.dtype)


# --- all_reduce ----------------------------------------------------------------


def _functional_all_reduce(tensor: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    groups = _named_group(group_name)
    (host,) = _to_host([tensor])
    with _Operation("all_reduce", [host], groups, f" {reduce_op}") as operation:
        if reduce_op == "avg":
            result = _reduce_one("sum", host, 1.0 / len(operation.group), operation.group)
        else:
            result = _reduce_one(reduce_op, host, 1.0, operation.group)
    return _to_device(result, tensor)


def _named_group(name: str) -> Groups | None:
    """The ranks of a c10d group name; xm passes an empty one for all."""
    if not name:
        return None
    from torch.distributed.distributed_c10d import _resolve_process_group, get_process_group_ranks

    return [get_process_group_ranks(_resolve_process_group(name))]


def _all_reduce(
    reduce_type: str, tensor: torch.Tensor, scale: float, groups: Groups, pin_layout: bool = True
) -> torch.Tensor:
    (host,) = _to_host([tensor])
    with _Operation("all_reduce", [host], groups, f" {reduce_type}") as operation:
        result = _reduce_one(reduce_type, host, scale, operation.group)
    return _to_device(result, tensor)


def _all_reduce_inplace(
    reduce_type: str, tensors: Sequence[torch.Tensor], scale: float, groups: Groups, pin_layout: bool = True
) -> None:
    if not tensors:
        return
    hosts = _to_host(tensors)
    with _Operation("all_reduce", hosts, groups, f" {reduce_type}") as operation:
        results: dict[int, torch.Tensor] = {}
        # One transfer a dtype instead of one a tensor: a model has hundreds of gradients.
        for dtype in dict.fromkeys(host.dtype for host in hosts):
            indices = [index for index, host in enumerate(hosts) if host.dtype == dtype]
            joined = torch.cat([hosts[index].reshape(-1) for index in indices])
            reduced = _reduce_one(reduce_type, joined, scale, operation.group)
            parts = reduced.split([hosts[index].numel() for index in indices])
            results.update({i: part.view(hosts[i].shape) for i, part in zip(indices, parts, strict=True)})
    for index, tensor in enumerate(tensors):
        _assign(tensor, results[index])


# --- all_gather ----------------------------------------------------------------


def _gather(values: Sequence[torch.Tensor], dim: int, shard_count: int, groups: Groups) -> list[torch.Tensor]:
    hosts = _to_host(values)
    with _Operation("all_gather", hosts, groups, f" dim={dim}") as operation:
        _expect_shards(shard_count, operation.group)
        gathered = [communicator().all_gather(host, operation.group) for host in hosts]
    return [torch.cat(list(rows.unbind(0)), dim=dim) for rows in gathered]


def _all_gather(
    value: torch.Tensor,
    dim: int,
    shard_count: int,
    groups: Groups,
    pin_layout: bool = True,
    channel_id: int | None = None,
    use_global_device_ids: bool | None = None,
) -> torch.Tensor:
    return _to_device(_gather([value], dim, shard_count, groups)[0], value)


def _all_gather_out(
    output: torch.Tensor,
    value: torch.Tensor,
    token: Token,
    dim: int,
    shard_count: int,
    groups: Groups,
    pin_layout: bool = True,
) -> Token:
    _assign(output, _gather([value], dim, shard_count, groups)[0])
    return token


def _all_gather_coalesced(
    values: Sequence[torch.Tensor],
    token: Token,
    dim: int,
    shard_count: int,
    groups: Groups,
    pin_layout: bool = True,
) -> list[Any]:
    results = _gather(values, dim, shard_count, groups)
    return [*(_to_device(result, value) for result, value in zip(results, values, strict=True)), token]


def _all_gather_coalesced_out(
    outputs: Sequence[torch.Tensor],
    values: Sequence[torch.Tensor],
    token: Token,
    dim: int,
    shard_count: int,
    groups: Groups,
    pin_layout: bool = True,
) -> Token:
    for output, result in zip(outputs, _gather(values, dim, shard_count, groups), strict=True):
        _assign(output, result)
    return token


# --- reduce_scatter --------------------------------------------------------------


def _scatter(
    reduce_type: str,
    values: Sequence[torch.Tensor],
    scale: float,
    dim: int,
    shard_count: int,
    groups: Groups,
) -> list[torch.Tensor]:
    from neuron_sim.collectives import reduction

    hosts = _to_host(values)
    canonical = reduction.operation(reduce_type)
    results = []
    with _Operation("reduce_scatter", hosts, groups, f" {reduce_type} dim={dim}") as operation:
        _expect_shards(shard_count, operation.group)
        for host in hosts:
            _expect_divisible(host, dim, shard_count)
            parts = torch.stack(host.chunk(shard_count, dim=dim))
            received = communicator().all_to_all(parts, operation.group)
            reduced = reduction.reduce(canonical, received.unbind(0))
            results.append(reduced if scale == 1.0 else (reduced * scale).to(host.dtype))
    return results


def _reduce_scatter(
    reduce_type: str,
    value: torch.Tensor,
    token: Token,
    scale: float,
    scatter_dim: int,
    shard_count: int,
    groups: Groups,
    pin_layout: bool = True,
    channel_id: int | None = None,
    use_global_device_ids: bool | None = None,
) -> tuple[torch.Tensor, Token]:
    (result,) = _scatter(reduce_type, [value], scale, scatter_dim, shard_count, groups)
    return _to_device(result, value), token


def _reduce_scatter_out(
    reduce_type: str,
    output: torch.Tensor,
    value: torch.Tensor,
    token: Token,
    scale: float,
    scatter_dim: int,
    shard_count: int,
    groups: Groups,
    pin_layout: bool = True,
) -> Token:
    (result,) = _scatter(reduce_type, [value], scale, scatter_dim, shard_count, groups)
    _assign(output, result)
    return token


def _reduce_scatter_coalesced(
    reduce_type: str,
    values: Sequence[torch.Tensor],
    token: Token,
    scale: float,
    scatter_dim: int,
    shard_count: int,
    groups: Groups,
    pin_layout: bool = True,
) -> list[Any]:
    results = _scatter(reduce_type, values, scale, scatter_dim, shard_count, groups)
    return [*(_to_device(result, value) for result, value in zip(results, values, strict=True)), token]


def _reduce_scatter_coalesced_out(
    reduce_type: str,
    outputs: Sequence[torch.Tensor],
    values: Sequence[torch.Tensor],
    token: Token,
    scale: float,
    scatter_dim: int,
    shard_count: int,
    groups: Groups,
    pin_layout: bool = True,
) -> Token:
    results = _scatter(reduce_type, values, scale, scatter_dim, shard_count, groups)
    for output, result in zip(outputs, results, strict=True):
        _assign(output, result)
    return token


# --- all_to_all, permute -----------------------------------------------------------


def _all_to_all(
    value: torch.Tensor,
    token: Token,
    split_dimension: int,
    concat_dimension: int,
    split_count: int,
    groups: Groups,
    pin_layout: bool = True,
) -> tuple[torch.Tensor, Token]:
    (host,) = _to_host([value])
    detail = f" split={split_dimension} concat={concat_dimension}"
    with _Operation("all_to_all", [host], groups, detail) as operation:
        _expect_shards(split_count, operation.group)
        _expect_divisible(host, split_dimension, split_count)
        parts = torch.stack(host.chunk(split_count, dim=split_dimension))
        received = communicator().all_to_all(parts, operation.group)
    result = torch.cat(list(received.unbind(0)), dim=concat_dimension)
    return _to_device(result, value), token


def _collective_permute(value: torch.Tensor, token: Token, pairs: Groups) -> tuple[torch.Tensor, Token]:
    (host,) = _to_host([value])
    members = sorted({int(rank) for pair in pairs for rank in pair})
    if world.me().rank not in members:
        return _to_device(torch.zeros_like(host), value), token
    with _Operation("collective_permute", [host], [members], f" {[list(pair) for pair in pairs]}"):
        result = communicator().permute(host, pairs)
    return _to_device(result, value), token


# --- checks and refusals -------------------------------------------------------------


def _expect_shards(shard_count: int, group: Sequence[int]) -> None:
    if shard_count != len(group):
        raise ValueError(f"shard_count={shard_count}, but the group {list(group)} has {len(group)} ranks")


def _expect_divisible(tensor: torch.Tensor, dim: int, count: int) -> None:
    if tensor.shape[dim] % count:
        raise ValueError(
            f"dimension {dim} of shape {list(tensor.shape)} has {tensor.shape[dim]} entries, "
            f"which {count} ranks cannot share evenly: pad it to a multiple of {count}"
        )


def _refuse(feature: str, instead: str) -> Any:
    def refused(*arguments: Any, **keywords: Any) -> Any:
        raise NotSimulatedError(feature, instead)

    return refused


_FUNCTIONS = {
    "_xla_all_reduce": _all_reduce,
    "_xla_all_reduce_inplace": _all_reduce_inplace,
    "_xla_all_gather": _all_gather,
    "_xla_all_gather_out": _all_gather_out,
    "_xla_all_gather_coalesced": _all_gather_coalesced,
    "_xla_all_gather_coalesced_out": _all_gather_coalesced_out,
    "_xla_reduce_scatter": _reduce_scatter,
    "_xla_reduce_scatter_out": _reduce_scatter_out,
    "_xla_reduce_scatter_coalesced": _reduce_scatter_coalesced,
    "_xla_reduce_scatter_coalesced_out": _reduce_scatter_coalesced_out,
    "_xla_all_to_all": _all_to_all,
    "_xla_collective_permute": _collective_permute,
    "_xla_send": _refuse("xm.send", "Use xm.collective_permute with all pairs."),
    "_xla_recv": _refuse("xm.recv", "Use xm.collective_permute with all pairs."),
    "_xla_spmd_all_reduce": _refuse("SPMD all_reduce", "Use one process a core (torchrun)."),
    "_xla_spmd_reduce_scatter": _refuse("SPMD reduce_scatter", "Use one process a core (torchrun)."),
}
