"""The arithmetic of a reduction, in one order for all, so that every rank gets the same bits."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

_IN_PLACE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sum": torch.Tensor.add_,
    "mul": torch.Tensor.mul_,
    "min": lambda total, part: torch.minimum(total, part, out=total),
    "max": lambda total, part: torch.maximum(total, part, out=total),
    "and": torch.Tensor.bitwise_and_,
    "or": torch.Tensor.bitwise_or_,
}

# c10d says "product" and "band" where xm says "mul" and "and".
_NAMES = {"product": "mul", "band": "and", "bor": "or"}

# XLA's PRED: a sum is "or", a product is "and".
_OF_BOOLEANS = {"sum": "or", "max": "or", "mul": "and", "min": "and"}


def operation(name: str) -> str:
    """The canonical name of a reduction.

    Raises:
        ValueError: there is no such reduction; the message lists those there are.
    """
    canonical = _NAMES.get(name.lower(), name.lower())
    if canonical not in _IN_PLACE:
        raise ValueError(f"reduction {name!r} does not exist. There are: {', '.join(_IN_PLACE)}.")
    return canonical


def accumulator(name: str, dtype: torch.dtype) -> torch.dtype:
    """The dtype in which a reduction adds up: fp32 for small floats, which are rounded once, at the end."""
    if not dtype.is_floating_point or dtype.itemsize >= 4:
        return dtype
    # Minimum and maximum do not round; but there is no arithmetic in 8 bits.
    return torch.float32 if name in ("sum", "mul") or dtype.itemsize == 1 else dtype


def combiner(name: str, dtype: torch.dtype) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The function that combines another part with the total, in place."""
    return _IN_PLACE[_OF_BOOLEANS.get(name, name) if dtype == torch.bool else name]


def reduce(name: str, parts: Iterable[torch.Tensor]) -> torch.Tensor:
    """Reduce tensors of one shape and dtype, in the order given, into a new tensor."""
    remaining = iter(parts)
    first = next(remaining)
    wide = accumulator(name, first.dtype)
    total = first.to(wide, copy=True)
    combine = combiner(name, first.dtype)
    for part in remaining:
        combine(total, part.to(wide))
    return total.to(first.dtype)
