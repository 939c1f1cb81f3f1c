"""Element types and sizes of arrays."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass

_BITS = {
    "pred": 8,
    "s2": 2,
    "u2": 2,
    "s4": 4,
    "u4": 4,
    "s8": 8,
    "u8": 8,
    "s16": 16,
    "u16": 16,
    "f16": 16,
    "bf16": 16,
    "s32": 32,
    "u32": 32,
    "f32": 32,
    "s64": 64,
    "u64": 64,
    "f64": 32,  # a double is fp32 on a NeuronCore: torch_xla lowers it so for the device
    "c64": 64,
    "c128": 128,
    "f8e3m4": 8,
    "f8e4m3": 8,
    "f8e4m3b11fnuz": 8,
    "f8e4m3fn": 8,
    "f8e4m3fnuz": 8,
    "f8e5m2": 8,
    "f8e5m2fnuz": 8,
    "f8e8m0fnu": 8,
    "token": 0,
    "opaque": 0,
}
_NAMES = {"f32": "fp32", "bf16": "bf16", "f16": "fp16", "f64": "fp32"}

_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([0-9,<=]*)\]")


@dataclass(frozen=True)
class Shape:
    """A dense array's element type and dimensions."""

    dtype: str
    dims: tuple[int, ...]

    @functools.cached_property
    def elements(self) -> int:
        """Number of elements; 1 for a scalar."""
        return math.prod(self.dims)

    @functools.cached_property
    def bytes(self) -> int:
        """Size in memory."""
        return self.elements * _BITS[self.dtype] // 8

    @property
    def name(self) -> str:
        """The dtype as counters name it: ``fp32``, ``bf16``; HLO's own name for the rest."""
        return _NAMES.get(self.dtype, self.dtype)

    @functools.cached_property
    def key(self) -> tuple[int, ...]:
        """The sorted dimensions: the same for an array and its transposes; empty for a scalar."""
        return tuple(sorted(dim for dim in self.dims if dim != 1))


@functools.lru_cache(maxsize=4096)
def arrays(text: str) -> tuple[Shape, ...]:
    """All arrays of a shape's text, which may be a tuple's. A bounded dynamic dimension counts as its bound."""
    return tuple(
        Shape(dtype, tuple(int(dim.removeprefix("<=")) for dim in dims.split(",") if dim))
        for dtype, dims in _ARRAY.findall(text)
        if dtype in _BITS
    )


def total_bytes(shapes: tuple[Shape, ...]) -> int:
    """Bytes of all these arrays together."""
    return sum(shape.bytes for shape in shapes)
