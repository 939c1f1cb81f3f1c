"""In-place operations of optimizers, without torch's long way to their shapes.

Before torch_xla records `addcdiv_`, torch works out the result's shape, to tell of tensors that do not fit. For these
operations a Python function does it, of a hundred lines and 0.1 ms, and recording AdamW took four times as long for
it. On trn1 nothing of it runs: torch-neuronx records in-place operations as they are (XLA_DISABLE_FUNCTIONALIZATION
is 1 there, its documentation says).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

OPERATIONS = ("add_.Tensor", "mul_.Tensor", "lerp_.Scalar", "addcmul_", "addcdiv_")
"""Those of torch's optimizers whose shapes Python works out."""


def around_shapes(worked_out: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Around torch's function for the shape: of tensors that are alike, and of numbers, it is known."""

    def shapes(keys: Any, tensor: torch.Tensor, *others: Any, **keywords: Any) -> torch.Tensor:
        if tensor.is_floating_point() and all(_fits(other, tensor) for other in others):
            return tensor
        return worked_out(keys, tensor, *others, **keywords)

    return shapes


def _fits(other: Any, tensor: torch.Tensor) -> bool:
    """Whether ``other`` changes neither shape nor type: Python's numbers come as tensors without dimensions."""
    if not isinstance(other, torch.Tensor):
        return True
    return (other.shape == tensor.shape and other.dtype == tensor.dtype) or (
        not other.dim() and not other.is_complex()
    )
