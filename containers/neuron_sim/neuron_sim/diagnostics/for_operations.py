"""The texts of findings about operations that XLA lacks, or gets wrong. Pure."""

from __future__ import annotations

from neuron_sim.diagnostics import for_library
from neuron_sim.diagnostics.findings import Finding, times

_LACKED = "has no XLA form and"
_ONLY_SOME = {
    "aten::addmm": (
        "has an XLA form only with alpha and beta of 1, and",
        "Write it as beta * input + alpha * (mat1 @ mat2). torch.optim.Muon calls it with others: use a Muon of your "
        "own, written that way.",
    ),
    "aten::scatter_reduce.two": (
        'has an XLA form only with include_self=True (and not for reduce="mean"), and',
        'Begin with a value that changes no result (0 for "sum", 1 for "prod", torch.finfo(dtype).min for "amax", .max '
        'for "amin") and pass include_self=True. A mean is a sum divided by a count.',
    ),
}
"""Operations that torch_xla has with some arguments: what it lacks, and what to write."""


def cpu_fallback(
    op: str, line: str, count: int, library: str = "", *, graphs: int = 0, seconds: float = 0.0
) -> Finding:
    """An operation that XLA lacks. ``library``: which called it, if not the script.

    ``graphs``: how many are new because its result had another size, and how many ``seconds`` they compiled.
    """
    lacked, todo = _ONLY_SOME.get(op, (_LACKED, ""))
    inside = for_library.inside(library)
    sizes = (
        f" Its result changes in size: {graphs} more graph{'' if graphs == 1 else 's'} "
        f"({seconds:.1f} s of compiling here), each for neuronx-cc to compile on trn1."
        if graphs
        else ""
    )
    return Finding(
        "cpu_fallback",
        "warning",
        line,
        f"{op} {lacked} ran on the CPU {times(count)}{inside}: the graph ends before it, its inputs come to the "
        f"host and its results go back to the device.{sizes}",
        for_library.advice(library)
        or todo
        or "Replace it by operations that XLA has, with results of fixed shape (torch.where instead of nonzero or "
        "boolean indexing), or move it into the data loader.",
        count,
        seconds,
        op,
    )


def wrong_split(line: str, count: int, library: str = "") -> Finding:
    """A split by a list of sizes, not along the first dimension. ``library``: as in `cpu_fallback`."""
    inside = for_library.inside(library)
    return Finding(
        "wrong_split",
        "error",
        line,
        f"split() with a list of sizes{inside} gives other values on trn1 than here, without an error "
        "(https://github.com/pytorch/xla/issues/8640): torch-neuronx turns PyTorch's functionalization off.",
        f"{'Set' if library else 'Use slices (x[..., :n]) or torch.tensor_split, which are right, or set'} "
        "XLA_DISABLE_FUNCTIONALIZATION=0 before torch_xla is imported.",
        count,
    )
