"""The fit of the constants of `calibrations` to step times: the priors, and the constants that are assumed.

The priors come from the hardware's documentation and from simple counts. They keep a constant plausible when the
rows that determine it are left out. `least_squares` has the method.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from ..model.described_step import training_step
from ..model.engines import Constants
from . import least_squares
from .least_squares import Prior, fitted_values
from .row_reader import PublishedRow
from .versions import log_speed_of_row

_GPU = {
    "tensor": Prior(0.8, 0.1, "240-270 of 312 TFLOPS: what cuBLAS reaches", "all rows"),
    "vector": Prior(0.7, 0.3, "element-wise kernels that stream HBM", "all rows"),
    "eager_passes": Prior(25, 0.3, "as on trn1", "the BERT and Megatron-LM rows"),
    "flash": Prior(0.3, 0.3, "FlashAttention's paper: 25-40 % forward and backward", "the MPT rows"),
    "link": Prior(0.375, 0.4, "225 of the 600 GB/s, both directions, in NCCL's own tests", "tensor-parallel rows"),
    "network": Prior(0.6, 0.4, "of what the adapters carry", "rows of many nodes"),
    "hop_s": Prior(2e-6, 0.7, "order of magnitude of a step of NCCL's ring", "rows of many nodes"),
    "hidden_collectives": Prior(0.6, 0.4, "gathers of the next layer run beside this one", "rows of many nodes"),
    "straggling": Prior(0.01, 0.5, "one percent a doubling of the nodes", "rows of many nodes"),
    "pipeline": Prior(0.05, 0.7, "waits between stages; a tenth of a bubble", "pipeline-parallel rows"),
    "recomputed": Prior(0.9, 0.2, "all but what follows the last activation kept", "rows that recompute"),
    "crowding": Prior(0.4, 0.5, "the allocator frees and starts again", "MPT-30b on eight GPUs"),
}  # fmt: skip

PRIORS: Mapping[str, Mapping[str, Prior]] = {
    "trn1": {
        "tensor": Prior(0.75, 0.25, "what compiled matrix kernels reach", "all rows"),
        "vector": Prior(
            0.4, 0.3, "half of 128 lanes at 1.12 GHz in bf16, over 410 GB/s of HBM; rest waits",
            "all rows",
        ),
        "memory": Prior(0.6, 0.3, "streams of large tensors", "rows that accumulate small microbatches"),
        "eager_passes": Prior(
            25, 0.3, "softmax, mask, dropout and copies: a dozen passes forward, as many backward",
            "BERT, ViT and GPT rows",
        ),
        "flash": Prior(
            0.2, 0.3, "ten element-wise passes a score beside its products", "the Llama rows"
        ),
        "link": Prior(0.35, 0.4, "of 192 GB/s a core; nccom-test prints 41 GB/s for two ranks",
                      "tensor-parallel rows"),
        "hop_s": Prior(1e-5, 0.5, "order of magnitude of a DMA and its semaphore",
                       "rows with 32 tensor-parallel or 512 data-parallel workers"),
        "pipeline": Prior(0.1, 0.7, "graphs of forward and backward apart, unequal stages", "pipeline-parallel rows"),
    },
    "a100": _GPU,
    "h100": {
        **_GPU,
        "tensor": Prior(0.68, 0.1, "600-700 TFLOPS: cuBLAS under the power limit", "all rows"),
        "vector": Prior(0.63, 0.2, "as fitted on the A100", "all rows"),
        "flash": Prior(0.2, 0.4, "half of the A100's part: kernels made for that one", "the MPT rows"),
        "recomputed": Prior(0.78, 0.15, "as fitted on the A100", "rows that recompute"),
    },
}  # fmt: skip

ASSUMED: Mapping[str, Mapping[str, float]] = {
    "trn1": {
        "network": 0.6, "overlap": 0.4, "hidden_collectives": 0.0, "straggling": 0.01, "recomputed": 1.0,
        "crowding": 0.0,
    },
    "a100": {"memory": 0.7, "overlap": 0.0},
    "h100": {"memory": 0.7, "overlap": 0.0},
}  # fmt: skip
"""Constants that are assumed, not fitted. On trn1: ``network`` 0.6 of EFA; ``straggling`` 1 % for each doubling of the
instances; ``overlap`` 0.4, because separate engines run their instructions at the same time; ``hidden_collectives`` 0,
because collectives of gradients come at the end of the step; ``recomputed`` and ``crowding``, because no row recomputes
whole layers or shards all weights. On GPUs: ``overlap`` 0, because kernels run one after the other."""


def step_s(row: PublishedRow, constants: Constants) -> float:
    """The modelled seconds of a row's optimizer step, with the Neuron versions that it ran on."""
    usual = training_step(row.training, row.instance, constants, row.nodes).total_s
    return usual * math.exp(-log_speed_of_row(row.config, row.neuron_version))


def relative_error(row: PublishedRow, constants: Constants) -> float:
    """The relative error of a row's throughput: (predicted - published) / published."""
    return row.step_s / step_s(row, constants) - 1


def fit(rows: Sequence[PublishedRow], key: str, start: Constants | None = None) -> Constants:
    """The constants that fit these rows best. ``start``: where the search begins; it has no other effect."""
    priors = PRIORS[key]
    base = Constants(**ASSUMED[key], **{name: prior.value for name, prior in priors.items()})

    def log_errors(values: Mapping[str, float]) -> Iterator[float]:
        current = replace(base, **values)
        return (math.log(step_s(row, current) / row.step_s) for row in rows)

    found = fitted_values(priors, log_errors, asdict(start or base), _MOST)
    return replace(base, **found)


_MOST = {"eager_passes": math.inf}  # the limit of all others is 1: they are parts of a peak, or seconds


def error_without(
    rows: Sequence[PublishedRow], key: str, together: Callable[[PublishedRow], Hashable], whole: Constants
) -> Callable[[PublishedRow], float]:
    """A function for the relative error of a row by constants fitted without the rows of its group.

    ``together`` gives the group of a row. ``whole``: fitted to all ``rows``, for a row that is in none of the groups.
    """
    without = least_squares.leave_out(rows, together, lambda rest, start: fit(rest, key, start))
    return lambda row: relative_error(row, without.get(together(row), whole))


def same_configuration(row: PublishedRow, other: PublishedRow) -> bool:
    """Whether two rows have the same training on the same instances."""
    return (row.training, row.instance_type, row.nodes) == (
        other.training, other.instance_type, other.nodes,
    )  # fmt: skip
