"""What one execution of a graph costs, read from its HLO text.

Matrix products and convolutions carry the FLOPs. The bytes are those a fusing
compiler cannot avoid: operands and results of the products, and the graph's own
inputs and outputs; elementwise work is taken as fused into them.
HLO text: "XLA Operation Semantics" (openxla.org), DotGeneral and Conv.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

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
    "f64": 64,
    "c64": 64,
    "c128": 128,
    "f8e4m3fn": 8,
    "f8e5m2": 8,
    "token": 0,
    "opaque": 0,
}
_NAMES = {"f32": "fp32", "bf16": "bf16", "f16": "fp16", "f64": "fp64"}

_ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([0-9,]*)\]")
_INSTRUCTION = re.compile(r"^\s*(?:ROOT )?%?([\w.-]+) = (\S+(?: \S+)*?) ([a-z][\w-]*)\(")
_OPERANDS = re.compile(r"%([\w.-]+)")
_CONTRACTING = re.compile(r"lhs_contracting_dims=\{([0-9,]*)\}")
_DIM_LABELS = re.compile(r"dim_labels=(\w+)_(\w+)->(\w+)")
_LAYOUT = re.compile(r"entry_computation_layout=\{\((.*)\)->(.*)\}")


@dataclass(frozen=True)
class Shape:
    """A dense array's element type and dimensions."""

    dtype: str
    dims: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of elements; 1 for a scalar."""
        return math.prod(self.dims)

    @property
    def bytes(self) -> int:
        """Size in memory."""
        return self.elements * _BITS[self.dtype] // 8


@dataclass
class Cost:
    """One execution of a graph. ``flops`` by dtype of the operands; two a multiply-add."""

    flops: dict[str, float] = field(default_factory=dict)
    bytes_accessed: int = 0
    input_bytes: int = 0
    output_bytes: int = 0


def cost(text: str) -> Cost:
    """The cost of the module whose text (before optimisation) this is.

    A loop's body is counted once. Raises ValueError when it is no HLO module.
    """
    if not text.startswith("HloModule"):
        raise ValueError(f"not an HLO module: {text[:60]!r}")
    result = Cost()
    header = text[: text.index("\n")]
    if layout := _LAYOUT.search(header):
        result.input_bytes = _total_bytes(layout[1])
        result.output_bytes = _total_bytes(layout[2])
    result.bytes_accessed = result.input_bytes + result.output_bytes
    shapes: dict[str, Shape] = {}
    for line in text.splitlines():
        if not (match := _INSTRUCTION.match(line)):
            continue
        name, shape_text, opcode = match.groups()
        arrays = _arrays(shape_text)
        if len(arrays) != 1 or shape_text.startswith("("):
            continue
        shape = shapes[name] = arrays[0]
        if opcode in ("dot", "convolution"):
            operands = [shapes[operand] for operand in _operands(line, match.end())]
            flops = (
                _dot_flops(line, shape, operands) if opcode == "dot" else _conv_flops(line, shape, operands)
            )
            dtype = _NAMES.get(operands[0].dtype, operands[0].dtype)
            result.flops[dtype] = result.flops.get(dtype, 0.0) + flops
            result.bytes_accessed += shape.bytes + sum(operand.bytes for operand in operands)
    return result


def _dot_flops(line: str, shape: Shape, operands: list[Shape]) -> float:
    match = _CONTRACTING.search(line)
    contracted = [int(dim) for dim in match[1].split(",") if dim] if match else []
    return 2.0 * shape.elements * math.prod(operands[0].dims[dim] for dim in contracted)


def _conv_flops(line: str, shape: Shape, operands: list[Shape]) -> float:
    """Each output element takes one multiply-add for each kernel element of its output feature."""
    labels = _DIM_LABELS.search(line)
    if labels is None:
        raise ValueError(f"convolution without dim_labels: {line.strip()[:120]!r}")
    kernel = operands[1]
    output_features = kernel.dims[labels[2].index("o")]
    return 2.0 * shape.elements * kernel.elements / output_features


def _operands(line: str, start: int) -> list[str]:
    """Names between the parentheses that open at ``start``."""
    depth, end = 1, start
    while depth and end < len(line):
        depth += {"(": 1, ")": -1}.get(line[end], 0)
        end += 1
    return _OPERANDS.findall(line[start:end])


def _arrays(text: str) -> list[Shape]:
    return [
        Shape(dtype, tuple(int(dim) for dim in dims.split(",") if dim))
        for dtype, dims in _ARRAY.findall(text)
        if dtype in _BITS
    ]


def _total_bytes(text: str) -> int:
    return sum(shape.bytes for shape in _arrays(text))
