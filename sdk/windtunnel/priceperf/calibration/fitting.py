"""How the constants of `calibrations` are fitted: a few lines of damped least squares.

Minimised is the sum of squared log errors of the step time, each over `ROW_ERROR`, plus the
squared distance of each fitted constant from its prior, in logs. The priors are what the
hardware's documentation and simple counts say; they keep a constant in reach when the rows
that inform it are left out. Deterministic: the same rows give the same constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ..instances import instance_type
from ..model.described_step import training_step
from ..model.engines import Constants
from .row_reader import PublishedRow

ROW_ERROR = 0.08
"""Expected error of one row (log): the rows' own spread of 7 %, and what the model leaves out."""


@dataclass(frozen=True)
class Prior:
    """What a constant is taken to be before any row is seen: ``value``, times or divided by e^``width``."""

    value: float
    width: float
    why: str
    rows: str


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
    },
    "a100": {
        "tensor": Prior(0.75, 0.25, "what cuBLAS reaches", "all rows"),
        "vector": Prior(0.7, 0.3, "element-wise kernels that stream HBM", "all rows"),
        "eager_passes": Prior(25, 0.3, "as on trn1", "the BERT rows"),
        "flash": Prior(0.35, 0.3, "FlashAttention's paper: 25-40 % forward and backward", "the MPT rows"),
    },
}  # fmt: skip

ASSUMED: Mapping[str, Constants] = {
    # The fitted constants start at their priors; the others are assumptions and stay.
    "trn1": Constants(
        tensor=0.75, vector=0.4, memory=0.6, eager_passes=25, flash=0.2, link=0.35, network=0.6,
        hop_s=1e-5, overlap=0.4, hidden_collectives=0.0, straggling=0.01,
    ),
    "a100": Constants(
        tensor=0.75, vector=0.7, memory=0.7, eager_passes=25, flash=0.35, link=0.375, network=0.6,
        hop_s=1e-5, overlap=0.0, hidden_collectives=0.5, straggling=0.01,
    ),
}  # fmt: skip
"""Not fitted, on either: ``network`` 0.6 of EFA; ``straggling`` 1 % a doubling of the instances. On trn1:
``overlap`` 0.4 of separate engines, whose instruction streams run at the same time; collectives of
gradients end the step (``hidden_collectives`` 0). On the A100: ``memory`` 0.7; ``link`` 225 of the
600 GB/s (both directions) NCCL reaches; kernels follow each other (``overlap`` 0); DDP and FSDP hide
collectives behind half of a microbatch."""


def step_s(row: PublishedRow, constants: Constants) -> float:
    """The model's time of one optimizer step of the row."""
    return training_step(row.training, instance_type(row.instance_type), constants, row.nodes).total_s


def relative_error(row: PublishedRow, constants: Constants) -> float:
    """(predicted - published) / published, of the throughput."""
    return row.step_s / step_s(row, constants) - 1


def fit(rows: Sequence[PublishedRow], key: str, start: Constants | None = None) -> Constants:
    """The constants that fit these rows best. ``start``: only where the search begins."""
    priors, base = PRIORS[key], ASSUMED[key]

    def constants(point: Sequence[float]) -> Constants:
        values = {
            name: prior.value * math.exp(distance * prior.width)
            for (name, prior), distance in zip(priors.items(), point, strict=True)
        }
        return replace(base, **{name: min(value, _MOST.get(name, 1.0)) for name, value in values.items()})

    def residuals(point: list[float]) -> list[float]:
        current = constants(point)
        return [math.log(step_s(row, current) / row.step_s) / ROW_ERROR for row in rows] + point

    first = [
        math.log(getattr(start or base, name) / prior.value) / prior.width for name, prior in priors.items()
    ]
    return constants(_least_squares(residuals, first))


_MOST = {"eager_passes": math.inf}  # all others are parts of a peak, or seconds


def leave_one_out(rows: Sequence[PublishedRow], key: str) -> tuple[float, ...]:
    """The relative error of each row, predicted with constants fitted to all others.

    Rows of exactly the same configuration leave together: one would give the other away.
    """
    whole = fit(rows, key)
    return tuple(
        relative_error(row, fit([other for other in rows if not same_configuration(row, other)], key, whole))
        for row in rows
    )


def same_configuration(row: PublishedRow, other: PublishedRow) -> bool:
    """Whether two rows trained the same thing on the same instances."""
    return (row.training, row.instance_type, row.nodes) == (
        other.training, other.instance_type, other.nodes,
    )  # fmt: skip


def leave_one_family_out(rows: Sequence[PublishedRow], key: str) -> tuple[float, ...]:
    """The relative error of each row, predicted with constants fitted to the other model families."""
    names = dict.fromkeys(row.family for row in rows)
    without = {name: fit(of_other_families(rows, name), key) for name in names}
    return tuple(relative_error(row, without[row.family]) for row in rows)


def of_other_families(rows: Sequence[PublishedRow], name: str) -> list[PublishedRow]:
    """The rows of all other families of models."""
    others = {row.family for row in rows} - {name}
    return [row for row in rows if row.family in others]


def _least_squares(residuals: Callable[[list[float]], list[float]], start: list[float]) -> list[float]:
    """Levenberg-Marquardt with a forward-difference Jacobian; for a handful of unknowns."""
    point, damping = list(start), 1e-2
    current = residuals(point)
    cost = math.fsum(value * value for value in current)
    for _ in range(60):
        columns = []
        for index in range(len(point)):
            shifted = list(point)
            shifted[index] += 1e-6
            columns.append([(a - b) / 1e-6 for a, b in zip(residuals(shifted), current, strict=True)])
        normal = [[math.fsum(a * b for a, b in zip(x, y, strict=True)) for y in columns] for x in columns]
        gradient = [math.fsum(a * b for a, b in zip(x, current, strict=True)) for x in columns]
        for index in range(len(point)):
            normal[index][index] *= 1 + damping
        step = _solve(normal, gradient)
        candidate = [value - delta for value, delta in zip(point, step, strict=True)]
        values = residuals(candidate)
        candidate_cost = math.fsum(value * value for value in values)
        if candidate_cost <= cost:
            converged = max(map(abs, step)) < 1e-6
            point, current, cost, damping = candidate, values, candidate_cost, damping / 10
            if converged:
                break
        else:
            damping *= 10
    return point


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination with pivoting."""
    size = len(right)
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda index: abs(rows[index][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for index in range(column + 1, size):
            factor = rows[index][column] / rows[column][column]
            rows[index] = [a - factor * b for a, b in zip(rows[index], rows[column], strict=True)]
    solution = [0.0] * size
    for index in reversed(range(size)):
        known = sum(rows[index][other] * solution[other] for other in range(index + 1, size))
        solution[index] = (rows[index][size] - known) / rows[index][index]
    return solution
