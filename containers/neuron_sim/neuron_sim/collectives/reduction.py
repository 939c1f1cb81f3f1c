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
_NAMES = {"product": "mul", "band": "and", "bor": "or", "avg": "avg"}


def operation(name: str) -> str:
    """The canonical name of a reduction.

    Raises:
        ValueError: there is no such reduction; the message lists those there are.
    """
    canonical = _NAMES.get(name.lower(), name.lower())
    if canonical not in _IN_PLACE:
        raise ValueError(f"reduction {name!r} does not exist. There are: {', '.join(_IN_PLACE)}.")
    return canonical


def reduce(name: str, parts: Iterable[torch.Tensor]) -> torch.Tensor:
    """Reduce tensors of one shape and dtype, in the order given, into a new tensor.

    Half-precision sums and products are kept in fp32 and rounded once at the end.
    """
    remaining = iter(parts)
    first = next(remaining)
    dtype = first.dtype
    if dtype == torch.bool:
        # XLA's PRED: a sum is "or", a product is "and".
        name = {"sum": "or", "max": "or", "mul": "and", "min": "and"}.get(name, name)
    wide = torch.float32 if dtype in (torch.bfloat16, torch.float16) and name in ("sum", "mul") else dtype
    total = first.to(wide, copy=True)
    combine = _IN_PLACE[name]
    for part in remaining:
        combine(total, part.to(wide))
    return total.to(dtype)
