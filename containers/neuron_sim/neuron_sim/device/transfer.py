"""Tensors between the simulated device and the host."""

from __future__ import annotations

from collections.abc import Sequence

import _XLAC
import torch

# Views of which several elements are one element of the base: writing through them sums up there.
_OVERLAPPING = ("expand", "as_strided", "unfold")


def to_host(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Compute all that is pending, and copy these tensors to the host.

    All live tensors are computed, not only these: whatever depends on the same
    graph (the loss, say) would otherwise be computed a second time later.
    """
    device = _XLAC._xla_get_default_device()
    # `torch_xla.compile(full_graph=True)` forbids it, since on the device a collective needs no execution.
    allowed = _XLAC._get_allow_execution()
    _XLAC._set_allow_execution(True)
    try:
        _XLAC._xla_sync_live_tensors(str(device), [], True)
        return list(_XLAC._xla_get_cpu_tensors([tensor.detach() for tensor in tensors]))
    finally:
        _XLAC._set_allow_execution(allowed)


def to_device(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return tensor.to(like.device)


def assign(target: torch.Tensor, value: torch.Tensor) -> None:
    """Give a tensor a value, and what it is a view of or is viewed by.

    Many a gradient is an expanded scalar: for those the value replaces the tensor's own
    below functionalization, as torch_xla's own in-place collectives do it for all. (For all
    it would be wrong: the views of DistributedDataParallel's buckets would keep their values.)
    The version that autograd checks stays, also as in torch_xla.
    """
    source = to_device(value, target)
    with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter(target):
        if _is_overlapping(target):
            _below(target).copy_(_below(source))
        else:
            target.copy_(source)


def _is_overlapping(tensor: torch.Tensor) -> bool:
    if not torch._is_functional_tensor(tensor):
        return False
    views = torch._C._functionalization.get_view_meta_sequence(tensor)
    return any(type(view).__name__.startswith(_OVERLAPPING) for view in views)


def _below(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor that functionalization wraps, brought up to date."""
    torch._sync(tensor)
    return torch._from_functional_tensor(tensor)
