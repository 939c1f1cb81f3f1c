"""WINDTUNNEL_SIMULATE_AUTO_CAST=1: what NEURON_CC_FLAGS' `--auto-cast` does to products.

The Neuron compiler then casts the fp32 inputs of matrix products and convolutions, forward and backward, and
accumulates in fp32. Simulated: each such input is rounded to nearest just before its product, inside the graph, and
stays fp32. `--auto-cast=all` casts everything else too, which is not simulated. Nor is `fp8_e4m3`, for which AWS
documents no range.

Source: AWS Neuron documentation, "Neuron Compiler CLI Reference Guide" and "Mixed precision and performance-accuracy
tuning for training". Up to Neuron 2.26 this was the compiler's default (`--auto-cast=matmult`), since 2.27 it is off.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from neuron_sim import settings
from neuron_sim.compiler import flags
from neuron_sim.device import transfer
from neuron_sim.diagnostics import advice, findings

Kernel = Callable[..., Any]

PRODUCTS = {
    "mm": (0, 1), "bmm": (0, 1), "mv": (0, 1), "dot": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2),
    "convolution_overrideable": (0, 1),
}  # fmt: skip
"""torch_xla's kernels that multiply, and the positions of the arguments that they multiply."""
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_TF32_CUT = 1 << 13
"""tf32 keeps 10 of fp32's 23 bits of fraction."""

_replace_kernels: Callable[[], None]
_cast: Kernel
"""torch_xla's own kernel, which rounds to nearest."""
_type = ""
_decided = False


def start(replace_kernels: Callable[[], None]) -> None:
    """Keep what `decide` calls later: a script may set the variables until it first uses the device."""
    global _replace_kernels
    _replace_kernels = replace_kernels


def decide() -> None:
    """Read the variables, and replace the kernels if they ask for it. Called when the device is used; idempotent."""
    global _decided, _cast, _type
    if _decided or not settings.simulate_auto_cast():
        return
    _decided = True
    asked = flags.asked(settings.compiler_wish())
    _type = asked.auto_cast_type
    rounds = asked.auto_cast != "none" and _type in (*_DTYPES, "tf32")
    findings.note(advice.auto_cast(asked.auto_cast, _type, rounds))
    if rounds:
        _cast = torch.library.get_kernel("aten::_to_copy", "XLA").call_boxed
        _replace_kernels()


def around_product(positions: Sequence[int]) -> Callable[[Kernel], Kernel]:
    """Decorate a kernel: round its arguments at these positions, which it multiplies."""

    def around(product: Kernel) -> Kernel:
        def rounded_product(keys: Any, *given: Any, **keywords: Any) -> Any:
            arguments = [_rounded(keys, v) if i in positions else v for i, v in enumerate(given)]
            return product(keys, *arguments, **keywords)

        return rounded_product

    return around


def around_convolution_backward(backward: Kernel) -> Kernel:
    """Round the inputs of a convolution's two gradient products. The bias's gradient is a sum of unrounded values."""
    add_up = torch.library.get_kernel("aten::sum.dim_IntList", "XLA").call_boxed

    def rounded_backward(keys: Any, *given: Any) -> Any:
        *most, (of_input, of_weight, of_bias) = given
        rounded = [_rounded(keys, value) for value in most[:3]]
        gradients = list(backward(keys, *rounded, *most[3:], [of_input, of_weight, False]))
        if of_bias:
            of_result = most[0]
            gradients[2] = add_up(keys, of_result, [0, *range(2, of_result.dim())], False)
        return tuple(gradients)

    return rounded_backward


def around_einsum(_: Kernel) -> Kernel:
    """Use torch's own einsum, which calls products of the list above. torch_xla's is an operation of its own."""
    einsum: Kernel = torch.library.get_kernel("aten::einsum", "CPU").call_boxed
    return einsum


def _rounded(keys: Any, value: torch.Tensor) -> torch.Tensor:
    if value.dtype != torch.float32 or value.device.type != "xla":
        return value
    if _type == "tf32":
        return transfer.below(_operation()(value))
    return _cast(keys, _cast(keys, value, dtype=_DTYPES[_type]), dtype=torch.float32)


@functools.lru_cache(maxsize=1)
def _operation() -> Any:
    from torch_xla.core import xla_op_registry

    return xla_op_registry.register("round_to_tf32", _lower)


def _lower(value: Any) -> Any:
    """The HLO that rounds to nearest, ties to even, with integer operations. Infinity and NaN stay."""
    from torch_xla.core import xla_builder as xb

    sizes = list(value.shape().sizes)

    def constant(number: int) -> Any:
        one = xb.Op.scalar(value.builder(), number, dtype=xb.Type.U32)
        return one.broadcast(sizes) if sizes else one

    bits = value.bitcast(xb.Type.U32)
    last = bits / constant(_TF32_CUT) & constant(1)
    rounded = (bits + constant(_TF32_CUT // 2 - 1) + last) / constant(_TF32_CUT) * constant(_TF32_CUT)
    exponent = constant(0x7F800000)
    return ((bits & exponent) != exponent).select(rounded, bits).bitcast(xb.Type.F32)
