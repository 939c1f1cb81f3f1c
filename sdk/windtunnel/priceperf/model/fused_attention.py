"""Attention in one kernel that keeps the scores on the chip: flash attention, or PyTorch's kernel for 32-bit data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..instances import InstanceType
from .engines import Constants, Product
from .training_settings import DTYPE_BYTES

FORWARD, BACKWARD = 2, 5
"""Products of the size of the scores in the kernel. Backward has 5 because it computes the scores again."""
CAUSAL = 0.5
"""Part of the scores that is computed with a causal mask, where a token does not see later ones."""

FLASH_BYTES = 2
"""The largest numbers, in bytes, that flash attention kernels accept."""
IN_32_BITS = 0.3
"""Part of the fp32 peak that scaled dot product attention reaches on 32-bit data, which flash attention kernels do not
accept: 20 of 67 TFLOPS, in fp32 and TF32 alike, in plain scripts that the project measured on an H100
(tests/benchmarks/gpu_training.py)."""

_WRITTEN_OUT = {True: 6, False: 2}
"""Products of the size of the scores without a fused kernel, with and without a backward pass."""


def seconds(
    flops: float, instance: InstanceType, dtype: str, constants: Constants, *, plain: bool = False
) -> float:
    """Seconds of one core for these FLOPs. ``plain``: PyTorch's kernels, without matrix engine for 32-bit numbers."""
    reached = instance.core_peak_flops(dtype) * constants.flash
    if plain and DTYPE_BYTES[dtype] > FLASH_BYTES:
        reached = instance.core_peak_flops("fp32") * IN_32_BITS
    return flops / reached


class Fused(NamedTuple):
    """The ``part`` of a step's attention scores that scaled dot product attention computes, 0 to 1; ``causal``: the
    part of these with a causal mask, 0 to 1.
    """

    part: float = 0.0
    causal: float = 0.0

    def taken_from(self, products: Sequence[Product], *, backward: bool) -> tuple[float, tuple[Product, ...]]:
        """Split a step's products: the FLOPs of the fused kernel, and the products that remain outside of it."""
        flops = self.part * sum(item.flops for item in products if item.is_of_scores)
        again = (FORWARD + BACKWARD * backward) / _WRITTEN_OUT[backward]
        left = tuple(
            item._replace(times=item.times * (1 - self.part)) if item.is_of_scores else item
            for item in products
        )
        return flops * again * (1 - self.causal * (1 - CAUSAL)), left
