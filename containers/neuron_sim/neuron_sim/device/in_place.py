"""A fast way to the result shapes of optimizers' in-place operations.

Before torch_xla records `addcdiv_`, torch computes the result's shape, to raise if tensors do not fit. For these
operations a Python function does it, which takes longer than all the rest: recording AdamW took three times as long.
On trn1 it does not run: torch-neuronx records in-place operations as they are (its documentation says that
XLA_DISABLE_FUNCTIONALIZATION is 1 there).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

OPERATIONS = {
    "add_.Tensor": True,
    "mul_.Tensor": True,
    "lerp_.Scalar": False,
    "addcmul_": False,
    "addcdiv_": False,
}
"""Operations of torch's optimizers whose shapes Python computes; True: a number arrives as a tensor of 0 dimensions."""


def around_shapes(numbers: bool) -> Callable[[Callable[..., torch.Tensor]], Callable[..., torch.Tensor]]:
    """Decorate torch's shape function: tensors that are alike, and ``numbers``, need no computation."""

    def around(worked_out: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def shapes(keys: Any, tensor: torch.Tensor, *others: Any, **keywords: Any) -> torch.Tensor:
            if tensor.is_floating_point() and all(_fits(other, tensor, numbers) for other in others):
                return tensor
            return worked_out(keys, tensor, *others, **keywords)

        return shapes

    return around


def _fits(other: Any, tensor: torch.Tensor, numbers: bool) -> bool:
    """Whether the result has the shape and dtype of ``tensor``, and ``other`` is on the same device."""
    if not isinstance(other, torch.Tensor):
        return True
    if numbers and not other.dim():
        return not other.is_complex()
    return (other.shape, other.dtype, other.device) == (tensor.shape, tensor.dtype, tensor.device)
