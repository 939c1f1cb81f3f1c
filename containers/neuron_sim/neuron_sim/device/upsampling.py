"""The gradient of nearest-neighbour upsampling, as in a UNet.

torch_xla computes it on the device only for TPUs and NeuronCores (`upsample_nearest2d_backward` of its
aten_xla_type.cpp). Here the client is XLA's CPU client: torch_xla would compute it on the host, which cuts the step.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch


def nearest2d_backward(
    gradient: torch.Tensor,
    output_size: Sequence[int],
    input_size: Sequence[int],
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> torch.Tensor:
    """Replaces torch_xla's kernel: each input element gets the sum over the output elements copied from it."""
    for dimension, scale in ((2, scales_h), (3, scales_w)):
        gradient = _added_up(gradient, dimension, input_size[dimension], scale)
    return gradient


def _added_up(gradient: torch.Tensor, dimension: int, size: int, scale: float | None) -> torch.Tensor:
    shape = list(gradient.shape)
    times, rest = divmod(shape[dimension], size)
    # PyTorch leaves the scale out where the size stays or doubles.
    if not rest and (times in (1, 2) or scale in (None, times)):
        split = [*shape[:dimension], size, times, *shape[dimension + 1 :]]
        return torch.view_copy(gradient, split).sum(dimension + 1)
    steps = torch.arange(shape[dimension]) * (1 / scale if scale else size / shape[dimension])
    source = steps.floor().clamp(max=size - 1).long().to(gradient.device)
    shape[dimension] = size
    return gradient.new_zeros(shape).index_add(dimension, source, gradient)
