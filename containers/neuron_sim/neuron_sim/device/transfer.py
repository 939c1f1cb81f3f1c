"""Moves tensors between the simulated device and the host."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import _XLAC
import torch
from torch.utils import dlpack

from neuron_sim import settings
from neuron_sim.counters import batches, script_time
from neuron_sim.device import strided_views

ALIGNMENT = 64
"""Bytes. XLA:CPU uses memory that it has not allocated itself only at multiples of this."""

_DOWNCAST = (torch.float32, torch.float64)

# Host tensors that the device still uses. The last reference to a tensor that Python has seen may only be dropped
# with the GIL held. XLA drops its reference in a thread of its own, while this thread waits for XLA with the GIL.
_lent: list[torch.Tensor] = []

# Views in which several elements may be one element of the base: a write through them adds up there.
_OVERLAPPING = ("expand", "as_strided", "unfold")


def to_host(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Compute all that is pending, and copy these tensors to the host.

    All live tensors are computed, not only these: whatever depends on the same
    graph (the loss, say) would otherwise be computed a second time later.
    """
    _sync()
    with _execution():
        return list(_XLAC._xla_get_cpu_tensors([tensor.detach() for tensor in tensors]))


def _sync() -> None:
    strided_views.refresh()
    # The script's time on trn1 too: pending operations are recorded and handed over there.
    with script_time.of_the_script(), _execution():
        _XLAC._xla_sync_live_tensors(str(_XLAC._xla_get_default_device()), [], True)


@contextlib.contextmanager
def _execution() -> Iterator[None]:
    # `torch_xla.compile(full_graph=True)` forbids execution; on the device, a collective needs none.
    allowed = _XLAC._get_allow_execution()
    _XLAC._set_allow_execution(True)
    try:
        yield
    finally:
        _XLAC._set_allow_execution(allowed)


def to_read(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Compute all that is pending, and return views of these tensors' memory on the device.

    Only read the views, and drop them before anything is computed again: XLA:CPU
    shares the device's memory with the host. A tensor without memory of its own
    (an expanded gradient) is copied.
    """
    _sync()
    looks = [_look(tensor.detach()) for tensor in tensors]
    missing = [index for index, look in enumerate(looks) if look is None]
    if missing:
        for index, copy in zip(missing, to_host([tensors[index] for index in missing]), strict=True):
            looks[index] = copy
    return [look for look in looks if look is not None]


def look_at(tensor: torch.Tensor, *, as_held: bool = False) -> torch.Tensor | None:
    """The values of a tensor that is computed already, or is a view of a computed one; None for any other.

    Nothing is executed. Only read the result, at once. ``as_held``: even if the device holds another dtype (`lend`).
    """
    if _is_computed(tensor):
        return _look(tensor.detach(), as_held=as_held)
    base = tensor._base if tensor._is_view() else None
    if base is None or not _is_computed(base) or (seen := _look(base.detach())) is None:
        return None
    try:
        return tensor._view_func_unsafe(seen)
    except RuntimeError:
        return None  # some views of XLA tensors cannot be made of a tensor with strides


def _is_computed(tensor: torch.Tensor) -> bool:
    return not _XLAC._check_tensor_need_materialization([tensor])[0]


def _look(tensor: torch.Tensor, *, as_held: bool = False) -> torch.Tensor | None:
    """A view of a computed tensor's memory, or None where it has none."""
    try:
        # Raises for a tensor without memory; exporting one would crash the process.
        _XLAC._unsafe_buffer_pointer(tensor)
    except RuntimeError:
        return None
    view: torch.Tensor = dlpack.from_dlpack(_XLAC._to_dlpack(tensor))
    same = view.shape == tensor.shape and view.is_contiguous()
    return view if same and (as_held or view.dtype == tensor.dtype) else None


def lend(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A device tensor that shares this host tensor's memory: write nothing there as long as it lives.

    Copied where XLA cannot use the memory as it is: it must be contiguous, at a multiple of `ALIGNMENT`, and of the
    dtype that the device holds (under XLA_USE_BF16 its fp32 tensors are bf16).
    """
    if tensor.numel() == 0 or not tensor.is_contiguous() or tensor.data_ptr() % ALIGNMENT:
        return to_device(tensor, like)
    if tensor.dtype in _DOWNCAST and settings.stochastic_rounding().bf16_by_environment:
        return to_device(tensor, like)
    _lent.append(tensor)
    lent: torch.Tensor = _XLAC._from_dlpack(dlpack.to_dlpack(tensor))
    return lent


def _drop_returned() -> None:
    """Forget the lent tensors that only Python still holds."""
    _lent[:] = [tensor for tensor in _lent if tensor._use_count() > 1]


def join(tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Copy tensors of one dtype side by side into new host memory, each where `lend` can lend it.

    Returns all of it as one flat tensor (with gaps of zeros), and each tensor's part of it.
    """
    _drop_returned()
    dtype = tensors[0].dtype
    step = ALIGNMENT // dtype.itemsize
    sizes = [-(-tensor.numel() // step) * step for tensor in tensors]
    flat = _aligned(sum(sizes), dtype)
    parts = []
    for tensor, piece in zip(tensors, flat.split(sizes), strict=True):
        piece[tensor.numel() :] = 0
        parts.append(piece[: tensor.numel()].view(tensor.shape).copy_(tensor))
    return flat, parts


def _aligned(count: int, dtype: torch.dtype) -> torch.Tensor:
    raw = torch.empty(count * dtype.itemsize + ALIGNMENT, dtype=torch.uint8)
    start = -raw.data_ptr() % ALIGNMENT
    return raw[start : start + count * dtype.itemsize].view(dtype)


def to_device(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return tensor.to(like.device)


def assign(target: torch.Tensor, value: torch.Tensor, *, lent: bool = False) -> None:
    """Assign a value to a tensor, its base and its views. ``lent``: lend the value's memory (`lend`).

    Many gradients are an expanded scalar: for those the value replaces the tensor below
    functionalization, as torch_xla's own in-place collectives do it for all tensors. (For
    all it would be wrong: the views of DistributedDataParallel's buckets would keep their
    old values.) The version that autograd checks stays unchanged, also as in torch_xla.
    """
    source = (lend if lent else to_device)(value, target)
    batches.summed.add(_XLAC._xla_get_tensor_id(source))
    with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter(target):
        if _is_overlapping(target):
            below(target).copy_(below(source))
        else:
            target.copy_(source)


def _is_overlapping(tensor: torch.Tensor) -> bool:
    if not torch._is_functional_tensor(tensor):
        return False
    views = torch._C._functionalization.get_view_meta_sequence(tensor)
    return any(type(view).__name__.startswith(_OVERLAPPING) for view in views)


def below(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor that functionalization wraps, brought up to date; the tensor itself where it wraps none."""
    if not torch._is_functional_tensor(tensor):
        return tensor
    torch._sync(tensor)
    return torch._from_functional_tensor(tensor)
