"""Matrix products and convolutions, each as the matrix product that an accelerator runs for it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from neuron_sim.counters.hlo.shapes import Shape

_DIMS = re.compile(r"(lhs|rhs)_(contracting|batch)_dims=\{([0-9,]*)\}")
_DIM_LABELS = re.compile(r"dim_labels=(\w+)_(\w+)->(\w+)")
_GROUPS = re.compile(r"(feature|batch)_group_count=(\d+)")
_SPREAD = re.compile(r"lhs_dilate=([0-9x]+)")


class Product(NamedTuple):
    """``batch`` products of a (``rows`` x ``inner``) matrix and an (``inner`` x ``columns``) one.

    ``convolved``: together they are one convolution, each product a group of it.
    """

    batch: int
    rows: int
    inner: int
    columns: int
    dtype: str
    convolved: bool = False

    @property
    def flops(self) -> int:
        """Floating-point operations: a multiplication and an addition are two."""
        return 2 * self.batch * self.rows * self.inner * self.columns


def dot(result: Shape, operands: Sequence[Shape], attributes: str) -> Product:
    """DotGeneral. Rows and columns: what is neither contracted nor batch of the left and of the right operand."""
    named = {
        (side, role): [int(dim) for dim in dims.split(",") if dim]
        for side, role, dims in _DIMS.findall(attributes)
    }
    left, right = operands
    batch = math.prod(left.dims[dim] for dim in named.get(("lhs", "batch"), ()))
    inner = math.prod(left.dims[dim] for dim in named.get(("lhs", "contracting"), ()))
    shared = max(1, batch * inner)
    return Product(batch, left.elements // shared, inner, right.elements // shared, left.name)


def convolution(result: Shape, operands: Sequence[Shape], attributes: str) -> Product:
    """A convolution as implicit GEMM.

    Rows are the output's positions in all samples, inner the kernel's elements times the input features
    of a group, columns the output features of a group. The gradient of the weights is a convolution
    too, whose dim_labels say which array has which role; its groups are counted as batch_group_count.

    The gradient of a strided convolution's input, and a transposed convolution, spread their input
    with zeros (lhs_dilate). Products with these zeros are not counted: rows are the input's positions then,
    and columns the output features times the kernel's elements. Other padding is counted as if it were data.

    Raises:
        ValueError: the instruction has no dim_labels.
    """
    labels = _DIM_LABELS.search(attributes)
    if labels is None:
        raise ValueError(f"convolution without dim_labels: {attributes.strip()[:120]!r}")
    data, kernel = operands
    features = kernel.dims[labels[2].index("o")]
    per_group = kernel.dims[labels[2].index("i")]
    area = kernel.elements // max(1, features * per_group)
    groups = math.prod(int(count) for _, count in _GROUPS.findall(attributes))
    columns = features // groups
    spread = _SPREAD.search(attributes)
    if spread is not None and any(step != "1" for step in spread[1].split("x")):
        rows = data.elements // max(1, data.dims[labels[1].index("f")])
        return Product(groups, rows, per_group, columns * area, data.name, convolved=True)
    rows = result.elements // max(1, features)
    return Product(groups, rows, per_group * area, columns, data.name, convolved=True)
