"""Attention in one kernel, which keeps the scores on the chip: a flash attention kernel, or PyTorch's for 32 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..instances import InstanceType
from .engines import Constants, Product
from .training_settings import DTYPE_BYTES

FORWARD, BACKWARD = 2, 5
"""Products of the size of the scores: backward computes the scores again."""
CAUSAL = 0.5
"""The part of the scores that is computed where a token sees none after it."""

FLASH_BYTES = 2
"""Flash attention kernels take numbers of so many bytes at most."""
IN_32_BITS = 0.3
"""Part of the fp32 peak that scaled dot product attention reaches on 32-bit data, which no flash attention kernel
takes: 20 of 67 TFLOPS, in fp32 and TF32 alike, in plain scripts that the project measured on an H100
(tests/benchmarks/gpu_training.py)."""

_WRITTEN_OUT = {True: 6, False: 2}
"""Products of the size of the scores where no kernel joins them, with and without backward."""


def seconds(
    flops: float, instance: InstanceType, dtype: str, constants: Constants, *, plain: bool = False
) -> float:
    """What one core takes. ``plain``: PyTorch's kernels, which take no 32-bit numbers into the matrix engine."""
    reached = instance.core_peak_flops(dtype) * constants.flash
    if plain and DTYPE_BYTES[dtype] > FLASH_BYTES:
        reached = instance.core_peak_flops("fp32") * IN_32_BITS
    return flops / reached


class Fused(NamedTuple):
    """The ``part`` of a step's scores that a script leaves to scaled dot product attention, and of that part the
    ``causal`` one: both 0 to 1.
    """

    part: float = 0.0
    causal: float = 0.0

    def taken_from(self, products: Sequence[Product], *, backward: bool) -> tuple[float, tuple[Product, ...]]:
        """FLOPs of the kernel, and the products of a step that are left beside it."""
        flops = self.part * sum(item.flops for item in products if item.is_of_scores)
        again = (FORWARD + BACKWARD * backward) / _WRITTEN_OUT[backward]
        left = tuple(
            item._replace(times=item.times * (1 - self.part)) if item.is_of_scores else item
            for item in products
        )
        return flops * again * (1 - self.causal * (1 - CAUSAL)), left
