"""Low-rank adapters (LoRA, Hu et al. 2021): what they add to a step of a model whose own weights are frozen.

A frozen matrix of (inner x columns) gets two more matrices, of (inner x rank) and (rank x columns); only these are
trained. A frozen matrix has two products instead of three: forward, and backward for the gradient of its input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from ..errors import InvalidInput, quoted
from .architectures import Architecture

LoraTargets = Literal["attention", "all-linear"]
"""The matrices that get adapters: those of attention, or all of a layer (the names are PEFT's)."""
INPUT_PASSES = 8
"""How often an input element of an adapter is read or written, forward and backward, outside of its products: dropout
and the sum of two gradients. Counted, not fitted."""
OUTPUT_PASSES = 8
"""The same for an output element: scaling, and the sum with the output of the frozen matrix. Counted, not fitted."""
LAUNCHES = 0.2
"""Kernels of one adapter, relative to those of a layer without adapters: some 20 (casts, dropout, products, scaling,
sum; forward and backward) of 100. Counted, not fitted."""


class Matrix(NamedTuple):
    """``copies`` matrices of a layer that turn ``inner`` elements of a token into ``columns``.

    ``split_inner``: tensor parallelism splits its input; otherwise its output.
    """

    inner: float
    columns: float
    copies: int
    split_inner: bool = False


@dataclass(frozen=True)
class Lora:
    """Adapters of one rank.

    Raises:
        InvalidInput: the rank is no whole number of 1 or more, or the targets are unknown.
    """

    rank: int
    targets: LoraTargets = "all-linear"

    def __post_init__(self) -> None:
        """Check rank and targets."""
        whole = isinstance(self.rank, int) and not isinstance(self.rank, bool)
        if not (whole and self.rank >= 1):
            raise InvalidInput(f"lora_rank must be a whole number of 1 or more, not {quoted(self.rank)}")
        if self.targets not in get_args(LoraTargets):
            raise InvalidInput(
                f"lora_targets must be one of {', '.join(get_args(LoraTargets))}, not {self.targets!r}"
            )

    def matrices(self, model: Architecture) -> Iterator[Matrix]:
        """The matrices of a layer that have adapters."""
        hidden, ffn = model.hidden_size, model.ffn_hidden_size
        yield Matrix(hidden, hidden, 1)  # query
        yield Matrix(hidden, model.kv_hidden_size, 2)  # key, value
        yield Matrix(hidden, hidden, 1, split_inner=True)  # output
        if self.targets == "all-linear":
            yield Matrix(hidden, ffn, model.up_projections)
            yield Matrix(ffn, hidden, 1, split_inner=True)

    def adapters(self, model: Architecture) -> int:
        """Number of adapters of a layer."""
        return sum(each.copies for each in self.matrices(model))

    def weights(self, model: Architecture, tensor_parallel: int = 1) -> float:
        """Number of weights of all adapters of the model on each tensor-parallel worker.

        PEFT and NxD split one of the two matrices, as the frozen matrix is split; each worker has all of the other.
        """
        split = 1 / tensor_parallel
        of_layer = sum(
            (each.inner * split + each.columns if each.split_inner else each.inner + each.columns * split)
            * each.copies
            for each in self.matrices(model)
        )
        return model.layers * self.rank * of_layer

    def elements(self, model: Architecture) -> float:
        """Elements that the adapters of a layer read or write for each token, outside of products."""
        return sum(
            (INPUT_PASSES * each.inner + OUTPUT_PASSES * each.columns) * each.copies
            for each in self.matrices(model)
        )

    @property
    def words(self) -> str:
        """The adapters in words, as shown to users."""
        return f"LoRA of rank {self.rank}{' on attention' if self.targets == 'attention' else ''}"


def lora_of(rank: int | None, targets: LoraTargets | None, model: Architecture) -> Lora | None:
    """The adapters that a user asks for; without a rank None.

    Raises:
        InvalidInput: as `Lora`, targets without a rank, or a rank above the model's hidden size.
    """
    if rank is None:
        if targets is not None:
            raise InvalidInput("lora_targets says where adapters are: give lora_rank=16 (--lora-rank 16) too")
        return None
    found = Lora(rank, targets or "all-linear")
    if found.rank > model.hidden_size:
        raise InvalidInput(
            f"lora_rank {quoted(rank)} is more than the model's hidden size of {model.hidden_size:,}, the rank of its "
            "own matrices: usual are 8 to 256"
        )
    return found
