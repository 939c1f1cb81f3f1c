"""In-place operations of optimizers, without torch's long way to their shapes.

Before torch_xla records `addcdiv_`, torch works out the result's shape, to tell of tensors that do not fit. For these
operations a Python function does it, which takes longer than all else: recording AdamW took three times as long. On
trn1 it does not run: torch-neuronx records in-place operations as they are (XLA_DISABLE_FUNCTIONALIZATION is 1 there,
its documentation says).
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
"""Those of torch's optimizers whose shapes Python works out; whether a number comes as a tensor without dimensions."""


def around_shapes(numbers: bool) -> Callable[[Callable[..., torch.Tensor]], Callable[..., torch.Tensor]]:
    """Around torch's function for the shape: of tensors that are alike, and of ``numbers``, it is known."""

    def around(worked_out: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def shapes(keys: Any, tensor: torch.Tensor, *others: Any, **keywords: Any) -> torch.Tensor:
            if tensor.is_floating_point() and all(_fits(other, tensor, numbers) for other in others):
                return tensor
            return worked_out(keys, tensor, *others, **keywords)

        return shapes

    return around


def _fits(other: Any, tensor: torch.Tensor, numbers: bool) -> bool:
    """Whether ``other`` changes neither shape nor type, and is where ``tensor`` is."""
    if not isinstance(other, torch.Tensor):
        return True
    if numbers and not other.dim():
        return not other.is_complex()
    return (other.shape, other.dtype, other.device) == (tensor.shape, tensor.dtype, tensor.device)
