"""Collectives of `torch_xla._XLAC`, carried out between the simulated cores.

On trn1 a collective is part of the graph. Here it ends the pending graph: the
inputs are computed, combined on the host, and come back as new device data. The
counters add the parts up as the one step that trn1 would run.
"""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Sequence
from typing import Any

import _XLAC
import torch

from neuron_sim import settings
from neuron_sim.counters import recorder, script_lines, script_time
from neuron_sim.device import malloc, transfer, world
from neuron_sim.device.transfer import assign, to_device, to_host, to_read
from neuron_sim.errors import NeuronSimError, NotSimulatedError
from neuron_sim.interconnect.communicator import Communicator

Groups = Sequence[Sequence[int]]
Token = Any

_current: settings.Settings
_communicator: Communicator | None = None


def install(current: settings.Settings) -> None:
    """Replace torch_xla's own collectives."""
    global _current
    _current = current
    for name, function in _FUNCTIONS.items():
        setattr(_XLAC, name, script_time.set_aside(function))


def communicator() -> Communicator:
    """This core's communicator; made at the first collective, when the rank is known."""
    global _communicator
    if _communicator is None:
        _communicator = Communicator(
            world.me(), _current.shared_memory_mib * 2**20, _current.collective_timeout_s
        )
    return _communicator


def join() -> None:
    """Be known to the other cores of this host. What is in the way, the first use of the device says."""
    with contextlib.suppress(NeuronSimError, OSError):
        communicator().join()


def leave(*, failed: bool = False) -> None:
    """Take part in nothing more; what was sent is kept until it is received, unless the script has failed."""
    if _communicator is not None:
        _communicator.leave(failed=failed)


class _Operation:
    """Agreement, timing and counting around one collective."""

    def __init__(
        self, name: str, tensors: Sequence[torch.Tensor], groups: Groups | None, detail: str = ""
    ) -> None:
        self._name = name
        self._bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        self.group = communicator().group_of(groups)
        self._what = f"{name}{detail} of {_shapes(tensors)} ({self._bytes} bytes){self._among()}"
        self._started = 0.0

    def __enter__(self) -> _Operation:
        self._started = time.perf_counter()
        # Compared in the first meeting of what follows.
        communicator().announce(self.group, f"{self._what} at {script_lines.calling_line()}")
        return self

    def _among(self) -> str:
        """The order counts: it is the order of gathered parts. All ranks go without saying."""
        everyone = self.group == list(range(world.me().world_size))
        return "" if everyone else f" in group {self.group}"

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:
            communicator().settle()
            recorder.collective(self._name, self._bytes, time.perf_counter() - self._started)


def _shapes(tensors: Sequence[torch.Tensor]) -> str:
    """Dtypes and shapes, the first few in full; the rest as a checksum that differs when they differ."""
    each = [f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}" for tensor in tensors]
    shown, rest = "+".join(each[:8]), each[8:]
    return f"{shown} and {len(rest)} more (#{zlib.crc32('+'.join(rest).encode()):08x})" if rest else shown


def _reduce_one(reduce_type: str, host: torch.Tensor, scale: float, group: list[int]) -> torch.Tensor:
    result = communicator().all_reduce(host, reduce_type, group)
    return result if scale == 1.0 else (result * scale).to(host.dtype)


# --- all_reduce ----------------------------------------------------------------


def all_reduce(
    reduce_type: str, tensor: torch.Tensor, scale: float, groups: Groups, pin_layout: bool = True
) -> torch.Tensor:
    (host,) = to_host([tensor])
    with _Operation("all_reduce", [host], groups, f" {reduce_type}") as operation:
        result = _reduce_one(reduce_type, host, scale, operation.group)
    return to_device(result, tensor)


def _all_reduce_inplace(
    reduce_type: str, tensors: Sequence[torch.Tensor], scale: float, groups: Groups, pin_layout: bool = True
) -> None:
    if not tensors:
        return
    hosts = to_read(tensors)
    results = list(hosts)
    with _Operation("all_reduce", hosts, groups, f" {reduce_type}") as operation:
        if sum(host.nbytes for host in hosts) >= malloc.WORTH_BYTES:
            malloc.keep()
        # One transfer a dtype instead of one a tensor: a model has hundreds of gradients.
        for dtype in dict.fromkeys(host.dtype for host in hosts):
            indices = [index for index, host in enumerate(hosts) if host.dtype == dtype]
            flat, parts = transfer.join([hosts[index] for index in indices])
            communicator().all_reduce_(flat, reduce_type, operation.group)
            if scale != 1.0:
                flat.mul_(scale) if dtype.is_floating_point else flat.copy_(flat * scale)
            for index, part in zip(indices, parts, strict=True):
                results[index] = part
    # The device's own memory: to be let go before anything is computed in it.
    del hosts
    for tensor, result in zip(tensors, results, strict=True):
        assign(tensor, result, lent=True)


# --- all_gather ----------------------------------------------------------------


def _gather(values: Sequence[torch.Tensor], dim: int, shard_count: int, groups: Groups) -> list[torch.Tensor]:
    hosts = to_host(values)
    with _Operation("all_gather", hosts, groups, f" dim={dim}") as operation:
        _expect_shards(shard_count, operation.group)
        gathered = [communicator().all_gather(host, operation.group) for host in hosts]
    return [torch.cat(list(rows.unbind(0)), dim=dim) for rows in gathered]


def all_gather(
    value: torch.Tensor,
    dim: int,
    shard_count: int,
    groups: Groups,
    pin_layout: bool = True,
    channel_id: int | None = None,
    use_global_device_ids: bool | None = None,
) -> torch.Tensor:
    return to_device(_gather([value], dim, shard_count, groups)[0], value)


def _all_gather_out(
    output: torch.Tensor,
    value: torch.Tensor,
    token: Token,
    dim: int,
    shard_count: int,
    groups: Groups,
    pin_layout: bool = True,
) -> Token:
    assign(output, _gather([value], dim, shard_count, groups)[0])
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
    return [*(to_device(result, value) for result, value in zip(results, values, strict=True)), token]


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
        assign(output, result)
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
    hosts = to_host(values)
    results = []
    with _Operation("reduce_scatter", hosts, groups, f" {reduce_type} dim={dim}") as operation:
        _expect_shards(shard_count, operation.group)
        for host in hosts:
            _expect_divisible(host, dim, shard_count)
            parts = torch.stack(host.chunk(shard_count, dim=dim))
            reduced = communicator().reduce_scatter(parts, reduce_type, operation.group)
            results.append(reduced if scale == 1.0 else (reduced * scale).to(host.dtype))
    return results


def reduce_scatter(
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
    return to_device(result, value), token


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
    assign(output, result)
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
    return [*(to_device(result, value) for result, value in zip(results, values, strict=True)), token]


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
        assign(output, result)
    return token


# --- all_to_all, permute -----------------------------------------------------------


def all_to_all(
    value: torch.Tensor,
    token: Token,
    split_dimension: int,
    concat_dimension: int,
    split_count: int,
    groups: Groups,
    pin_layout: bool = True,
) -> tuple[torch.Tensor, Token]:
    (host,) = to_host([value])
    detail = f" split={split_dimension} concat={concat_dimension}"
    with _Operation("all_to_all", [host], groups, detail) as operation:
        _expect_shards(split_count, operation.group)
        _expect_divisible(host, split_dimension, split_count)
        parts = torch.stack(host.chunk(split_count, dim=split_dimension))
        received = communicator().all_to_all(parts, operation.group)
    result = torch.cat(list(received.unbind(0)), dim=concat_dimension)
    return to_device(result, value), token


def _collective_permute(value: torch.Tensor, token: Token, pairs: Groups) -> tuple[torch.Tensor, Token]:
    (host,) = to_host([value])
    members = sorted({int(rank) for pair in pairs for rank in pair})
    if world.me().rank not in members:
        return to_device(torch.zeros_like(host), value), token
    with _Operation("collective_permute", [host], [members], f" {[list(pair) for pair in pairs]}"):
        result = communicator().permute(host, pairs)
    return to_device(result, value), token


def broadcast(value: torch.Tensor, source: int, group: Sequence[int]) -> torch.Tensor:
    """The value of the global rank ``source``, on all ranks of the group."""
    (host,) = to_host([value])
    with _Operation("broadcast", [host], [group], f" from {source}"):
        result = communicator().permute(host, [[source, rank] for rank in group])
    return to_device(result, value)


# --- send, recv ------------------------------------------------------------------------


def _send(value: torch.Tensor, token: Token, channel_id: int) -> tuple[torch.Tensor, Token]:
    (host,) = to_host([value])
    started = time.perf_counter()
    communicator().send(host, channel_id, _over("send", host, channel_id))
    recorder.collective("send", host.nbytes, time.perf_counter() - started)
    return to_device(host, value), token


def _recv(output: torch.Tensor, token: Token, channel_id: int) -> tuple[torch.Tensor, Token]:
    """What arrives is the result, and becomes the value of ``output`` too."""
    started = time.perf_counter()
    text = _over("recv", output, channel_id)
    host = communicator().receive(output.shape, output.dtype, channel_id, text)
    recorder.collective("recv", host.nbytes, time.perf_counter() - started)
    assign(output, host)
    return to_device(host, output), token


def _over(name: str, tensor: torch.Tensor, channel_id: int) -> str:
    return f"{name} on channel {channel_id} of {_shapes([tensor])} at {script_lines.calling_line()}"


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
    "_xla_all_reduce": all_reduce,
    "_xla_all_reduce_inplace": _all_reduce_inplace,
    "_xla_all_gather": all_gather,
    "_xla_all_gather_out": _all_gather_out,
    "_xla_all_gather_coalesced": _all_gather_coalesced,
    "_xla_all_gather_coalesced_out": _all_gather_coalesced_out,
    "_xla_reduce_scatter": reduce_scatter,
    "_xla_reduce_scatter_out": _reduce_scatter_out,
    "_xla_reduce_scatter_coalesced": _reduce_scatter_coalesced,
    "_xla_reduce_scatter_coalesced_out": _reduce_scatter_coalesced_out,
    "_xla_all_to_all": all_to_all,
    "_xla_collective_permute": _collective_permute,
    "_xla_send": _send,
    "_xla_recv": _recv,
    "_xla_spmd_all_reduce": _refuse("SPMD all_reduce", "Use one process a core (torchrun)."),
    "_xla_spmd_reduce_scatter": _refuse("SPMD reduce_scatter", "Use one process a core (torchrun)."),
}
