"""Stochastic rounding: NEURON_RT_STOCHASTIC_ROUNDING_EN=1 and NEURON_RT_STOCHASTIC_ROUNDING_SEED.

A NeuronCore then rounds every fp32 result that becomes bf16 or fp16 up or down at random, with the
probability that makes the mean right: a small update of a bf16 parameter is lost on most steps
and counts in full on a few, where round-to-nearest loses it on all.

Simulated: casts to these (also those of autocast and of `tensor.copy_`) and element-wise
arithmetic with such a result, which is what optimizers are made of. Each is computed in fp32
and rounded inside the graph; counters read it without (`counters/hlo/rounding.py`), as the
device does both at once. Everything else (matrix products, reductions, activations,
normalisations, what torch.compile has compiled, XLA_USE_BF16) rounds to nearest. Also,
matrix products in bf16 must stay in bf16 for the counters, which count FLOPs by dtype.
The random numbers differ from the device's. As there, each core draws the same ones, so that
replicas that compute the same stay equal.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from neuron_sim import settings
from neuron_sim.counters import script_time
from neuron_sim.counters.hlo.rounding import NAME
from neuron_sim.device import dynamo, transfer

_LAST_WITH_BF16_VARIABLES = (2, 7)
_LAST_WITH_ROUNDING_IMPLIED = (2, 1)

Kernel = Callable[..., torch.Tensor]

_replace_kernels: Callable[[], None]
_cast: Kernel
"""torch_xla's own kernel, which rounds to nearest."""
_decided = False


def start(replace_kernels: Callable[[], None]) -> None:
    """Keep what `decide` calls later: a script may set the variables until it first uses the device."""
    global _replace_kernels
    _replace_kernels = replace_kernels


def decide() -> None:
    """Read the variables, and replace the kernels if they ask for it. Called when the device is used; idempotent."""
    global _decided, _cast
    if _decided:
        return
    _decided = True
    asked = settings.stochastic_rounding()
    if asked.bf16_by_environment:
        _warn_of_bf16_by_environment(asked.enabled)
    if asked.enabled and not asked.bf16_by_environment:  # a tensor that is bf16 already needs no rounding
        _streams.start(asked.seed)
        _cast = torch.library.get_kernel("aten::_to_copy", "XLA").call_boxed
        _replace_kernels()


def _warn_of_bf16_by_environment(enabled: bool) -> None:
    """Warn of XLA_USE_BF16 and XLA_DOWNCAST_BF16, for which torch_xla up to 2.9 makes float tensors bf16.

    AWS Neuron documentation, "Migration from XLA_USE_BF16/XLA_DOWNCAST_BF16": supported up to
    Neuron 2.24, with PyTorch 2.7; up to torch-neuronx 2.1 they turned stochastic rounding on.
    """
    version = settings.read().framework_version
    instead = "Convert the model with model.to(torch.bfloat16), or use torch.autocast('xla')."
    name = "XLA_USE_BF16 or XLA_DOWNCAST_BF16"
    if version > _LAST_WITH_BF16_VARIABLES:
        warnings.warn(
            f"Windtunnel: {name} is set. AWS Neuron supports it up to PyTorch 2.7, and this job asks for "
            f"{version[0]}.{version[1]}; torch_xla still acts on it here. {instead}",
            stacklevel=4,
        )
    if enabled or version <= _LAST_WITH_ROUNDING_IMPLIED:
        warnings.warn(
            f"Windtunnel: with {name} the device rounds stochastically; here all is rounded to nearest. "
            f"Unset it. {instead}",
            stacklevel=4,
        )


# --- random numbers ------------------------------------------------------------


class _Streams:
    """This core's positions in two streams of random numbers: tensors on the device, advanced inside the graph.

    Optimizers have a stream of their own, so that parameters stay equal on all ranks even
    if one rank casts something else, for example to log it.
    """

    def __init__(self) -> None:
        self._seed = 0
        self._counters: dict[bool, torch.Tensor] = {}
        self.optimizers: list[int] = []

    def start(self, seed: int) -> None:
        """Begin again from ``seed``."""
        self._seed = seed
        self._counters = {}

    def next(self, device: torch.device) -> torch.Tensor:
        """A key that no earlier rounding of this stream had: int32 of shape [2], seed and count."""
        optimizing = bool(self.optimizers)
        counter = self._counters.get(optimizing)
        if counter is None:
            # The seeds of the two streams differ in their highest bit.
            seed = (self._seed & 0x7FFFFFFF) - (0x80000000 if optimizing else 0)
            counter = torch.tensor([seed, 0], dtype=torch.int32).to(device)
            self._step = torch.tensor([0, 1], dtype=torch.int32).to(device)
        counter = counter + self._step
        self._counters[optimizing] = counter
        return counter


_streams = _Streams()


def before_step(optimizer: Any, *_: Any) -> None:
    """Called before an optimizer's step, which draws from the optimizers' stream."""
    decide()
    after_step(optimizer)  # ends its previous step if that has raised, with the steps inside of it
    _streams.optimizers.append(id(optimizer))


def after_step(optimizer: Any, *_: Any) -> None:
    """Called after an optimizer's step."""
    if id(optimizer) in _streams.optimizers:
        del _streams.optimizers[_streams.optimizers.index(id(optimizer)) :]


# --- rounding, in the graph ------------------------------------------------------


def _lower(value: Any, key: Any, to: str) -> Any:
    """The HLO. ``to``: bf16 or fp16."""
    from torch_xla.core import xla_builder as xb

    u32 = xb.Type.U32
    sizes = list(value.shape().sizes)

    def scalar(number: int) -> Any:
        return xb.Op.scalar(value.builder(), number, dtype=u32)

    def everywhere(one: Any) -> Any:
        return one.broadcast(sizes) if sizes else one

    def constant(number: int) -> Any:
        return everywhere(scalar(number))

    def part(number: int) -> Any:
        return _mix(key.cast(u32).slice_in_dim(number, number + 1, 0).reshape([]), scalar)

    index = xb.Op.iota(value.builder(), xb.mkshape(u32, [math.prod(sizes)]), 0).reshape(sizes)
    noise = _mix(index * constant(0x9E3779B9) + everywhere(part(0)), constant) ^ everywhere(part(1))
    noise = _mix(noise, constant)
    return _ROUNDINGS[to](value, noise, constant)


def _to_bf16(value: Any, noise: Any, constant: Callable[[int], Any]) -> Any:
    """Add 16 random bits below bf16's last bit, then cut these 16 off. Exact: integers throughout.

    The magnitude grows with the integer, so this is unbiased for both signs and for
    denormals; what bf16 can represent has 16 zero bits there and stays. Infinity and NaN are
    not rounded; a value beyond the largest bf16 may become infinite, as with round-to-nearest.
    """
    from torch_xla.core import xla_builder as xb

    bits = value.bitcast(xb.Type.U32)
    exponent, mantissa, quiet = constant(0x7F800000), constant(0x007FFFFF), constant(0x00400000)
    finite = (bits & exponent) != exponent
    # A NaN whose payload lies in the cut-off bits alone must not become infinity: make it a quiet one.
    special = ((bits & mantissa) != constant(0)).select(bits | quiet, bits)
    rounded = finite.select(bits + noise / constant(1 << 16), special)
    return (rounded / constant(1 << 16)).cast(xb.Type.U16).bitcast(xb.Type.BF16)


def _to_fp16(value: Any, noise: Any, constant: Callable[[int], Any]) -> Any:
    """The same with fp16's 13 bits, as an fp32 value that fp16 can represent; only then cast it.

    Below fp16's smallest normal number, 2^-14, its last place stays 2^-24: count in units of that, which is exact, and
    compare the rest with 24 random bits. So the probability is off by less than 2^-24, and only below half a unit.
    """
    from torch_xla.core import xla_builder as xb

    u32, f32 = xb.Type.U32, xb.Type.F32

    def power(exponent: int) -> Any:
        return constant((127 + exponent) << 23).bitcast(f32)

    bits = value.bitcast(u32)
    exponent = constant(0x7F800000)
    sign, magnitude = bits & constant(0x80000000), bits & constant(0x7FFFFFFF)
    normal = (magnitude + noise / constant(1 << 19)) / constant(1 << 13) * constant(1 << 13)
    units = magnitude.bitcast(f32) * power(24)
    whole = units.floor()
    rest = ((units - whole) * power(24)).cast(u32)
    more = (noise / constant(1 << 8) < rest).select(power(0), power(0) - power(0))
    small = ((whole + more) * power(-24)).bitcast(u32)
    rounded = (magnitude < constant((127 - 14) << 23)).select(small, normal)
    finite = (magnitude & exponent) != exponent
    return finite.select(rounded | sign, bits).bitcast(f32).cast(xb.Type.F16)


_ROUNDINGS = {"bf16": _to_bf16, "fp16": _to_fp16}
_NAMES = {torch.bfloat16: "bf16", torch.float16: "fp16"}
"""The data types that are rounded to."""


def _mix(x: Any, constant: Callable[[int], Any]) -> Any:
    """A bijection of 32 bits in which each bit depends on all: multiply, shift, exclusive or.

    The divisions stand for right shifts, which torch_xla's builder lacks; XLA turns them into shifts.
    """
    x = (x ^ x / constant(1 << 16)) * constant(0x7FEB352D)
    x = (x ^ x / constant(1 << 15)) * constant(0x846CA68B)
    return x ^ x / constant(1 << 16)


@functools.lru_cache(maxsize=1)
def _operation() -> Any:
    from torch_xla.core import xla_op_registry

    return xla_op_registry.register(NAME, _lower)


@script_time.set_aside
def round_to(dtype: torch.dtype, value: torch.Tensor) -> torch.Tensor:
    """An fp32 tensor of the device, rounded stochastically: a bf16 or fp16 tensor whose mean is ``value``."""
    return transfer.below(_operation()(value, _streams.next(value.device), to=_NAMES[dtype]))


# --- kernels -----------------------------------------------------------------------


def around_arithmetic(name: str) -> Callable[[Kernel], Kernel]:
    """Decorate torch_xla's kernel of an element-wise operation: compute in fp32, then round to bf16 or fp16."""
    return lambda original: functools.partial(_arithmetic, original, _tensors_of(name))


def _tensors_of(name: str) -> tuple[bool, ...]:
    """Which positional arguments of an operation are tensors."""
    packet, _, overload = name.partition(".")
    schema = getattr(getattr(torch.ops.aten, packet), overload or "default")._schema
    return tuple(str(argument.type) == "Tensor" for argument in schema.arguments if not argument.kwarg_only)


@script_time.set_aside
def _arithmetic(
    original: Kernel, tensors: Sequence[bool], keys: Any, *given: Any, **keywords: Any
) -> torch.Tensor:
    first = next(value for value in given if isinstance(value, torch.Tensor))
    looking = dynamo.looking()
    # A number beside a tensor arrives as a number, but the kernel takes only tensors. In a graph that
    # torch.compile keeps, that tensor is on the host, as torch_xla would have it.
    device = torch.device("cpu") if looking else first.device
    arguments = [
        _as_tensor(value, _dtype_beside(first, value), device) if is_tensor and _is_number(value) else value
        for value, is_tensor in zip(given, tensors, strict=False)
    ]
    dtype = None if looking else _rounded([value for value in given if isinstance(value, torch.Tensor)])
    if dtype is None:
        with script_time.of_the_script():
            return original(keys, *arguments, **keywords)
    raised = [
        _cast(keys, value, dtype=torch.float32)
        if isinstance(value, torch.Tensor) and value.dtype == dtype and value.device.type == "xla"
        else value
        for value in arguments
    ]
    with script_time.of_the_script():
        result = original(keys, *raised, **keywords)
    return round_to(dtype, result)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _dtype_beside(tensor: torch.Tensor, number: Any) -> torch.dtype:
    """The dtype with which a scalar tensor promotes types as the number that it stands for would."""
    result = torch.result_type(tensor, number)
    return torch.float32 if result in _NAMES else result


@functools.lru_cache(maxsize=1024)
def _as_tensor(number: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A number as a tensor. Cached: most come again each step, and an upload takes longer than the arithmetic."""
    return torch.tensor(number, dtype=dtype).to(device)


def _rounded(tensors: list[torch.Tensor]) -> torch.dtype | None:
    """The data type to round to if torch's type promotion gives one for these operands.

    Tensors with dimensions decide before scalars.
    """
    deciding = [tensor for tensor in tensors if tensor.dim()] or tensors
    dtypes = {tensor.dtype for tensor in deciding if tensor.is_floating_point()}
    return next(iter(dtypes)) if len(dtypes) == 1 and dtypes <= _NAMES.keys() else None


def around_cast(cast: Kernel) -> Kernel:
    """Decorate torch_xla's kernel of `_to_copy`, which autocast uses too."""

    def rounded_cast(keys: Any, tensor: torch.Tensor, **keywords: Any) -> torch.Tensor:
        device = keywords.get("device")
        if (
            keywords.get("dtype") in _NAMES
            and tensor.dtype == torch.float32
            and tensor.device.type == "xla"
            and (device is None or torch.device(device).type == "xla")
            and not dynamo.looking()
        ):
            cast(keys, tensor, **keywords)  # recorded in the script's time, as on trn1; nothing uses it
            return round_to(keywords["dtype"], tensor)
        return cast(keys, tensor, **keywords)

    return rounded_cast


def around_copy(copy: Kernel) -> Kernel:
    """Decorate torch_xla's kernel of `copy`, which `tensor.copy_` uses."""

    def rounded_copy(
        keys: Any, target: torch.Tensor, source: torch.Tensor, *rest: Any, **keywords: Any
    ) -> torch.Tensor:
        if (
            target.dtype in _NAMES
            and source.dtype == torch.float32
            and target.device.type == source.device.type == "xla"
            and not dynamo.looking()
        ):
            source = round_to(target.dtype, source)
        return copy(keys, target, source, *rest, **keywords)

    return rounded_copy
