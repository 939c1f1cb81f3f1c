"""Collectives that torch_xla implements as kernels of `_c10d_functional`, and not in `_XLAC`.

`xm.all_reduce` of one tensor, `torch.distributed._functional_collectives` and functions
under `torch.compile` come here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from neuron_sim.counters import script_time
from neuron_sim.device import collectives, dynamo

_library: torch.library.Library | None = None

Kernel = Callable[..., torch.Tensor]


def install() -> None:
    """Replace torch_xla's kernels."""
    global _library
    _library = torch.library.Library("_c10d_functional", "IMPL")
    with warnings.catch_warnings():
        # torch warns of every replaced kernel; replacing it is what we are here for.
        warnings.filterwarnings("ignore", message=r"(?s).*[Oo]verrid", category=UserWarning)
        for name, (kernel, stand_in) in _KERNELS.items():
            _library.impl(name, _unless_traced(kernel, stand_in), "XLA", allow_override=True)


def _unless_traced(kernel: Kernel, stand_in: Kernel) -> Kernel:
    """While a function is only being looked at, a tensor of the right shape is enough: nobody else is there."""

    def call(*arguments: Any) -> torch.Tensor:
        with script_time.aside():
            return (stand_in if dynamo.tracing() else kernel)(*arguments)

    return call


def _ranks(group_name: str) -> list[int]:
    """The ranks of a c10d group by name; xm passes an empty one for all."""
    if not group_name:
        return collectives.communicator().group_of(None)
    from torch.distributed.distributed_c10d import _resolve_process_group, get_process_group_ranks

    return list(get_process_group_ranks(_resolve_process_group(group_name)))


def _all_reduce(tensor: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    ranks = _ranks(group_name)
    if reduce_op == "avg":
        return collectives.all_reduce("sum", tensor, 1.0 / len(ranks), [ranks])
    return collectives.all_reduce(reduce_op, tensor, 1.0, [ranks])


def _all_gather_into_tensor(tensor: torch.Tensor, group_size: int, group_name: str) -> torch.Tensor:
    return collectives.all_gather(tensor, 0, group_size, [_ranks(group_name)])


def _reduce_scatter_tensor(
    tensor: torch.Tensor, reduce_op: str, group_size: int, group_name: str
) -> torch.Tensor:
    name, scale = ("sum", 1.0 / group_size) if reduce_op == "avg" else (reduce_op, 1.0)
    return collectives.reduce_scatter(name, tensor, None, scale, 0, group_size, [_ranks(group_name)])[0]


def _all_to_all_single(
    tensor: torch.Tensor, output_splits: Sequence[int], input_splits: Sequence[int], group_name: str
) -> torch.Tensor:
    if any(size != 1 for size in (*output_splits, *input_splits)):
        # torch_xla's own refusal, in its own words.
        raise RuntimeError("torch_xla does not support arbitrary split sizes for all_to_all")
    ranks = _ranks(group_name)
    return collectives.all_to_all(tensor, None, 0, 0, len(ranks), [ranks])[0]


def _broadcast(tensor: torch.Tensor, src: int, group_name: str) -> torch.Tensor:
    """``src`` counts within the group."""
    ranks = _ranks(group_name)
    return collectives.broadcast(tensor, ranks[src], ranks)


def _same(tensor: torch.Tensor, *_: Any) -> torch.Tensor:
    return tensor.clone()


_KERNELS: dict[str, tuple[Kernel, Kernel]] = {
    "all_reduce": (_all_reduce, _same),
    "all_gather_into_tensor": (
        _all_gather_into_tensor,
        lambda tensor, group_size, _: torch.cat([tensor] * group_size),
    ),
    "reduce_scatter_tensor": (
        _reduce_scatter_tensor,
        lambda tensor, _, group_size, __: tensor.chunk(group_size)[0].clone(),
    ),
    "all_to_all_single": (_all_to_all_single, _same),
    "broadcast": (_broadcast, _same),
}
