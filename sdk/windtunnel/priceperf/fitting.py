"""How the constants of `calibration` are fitted: a few lines of damped least squares.

Minimised is the sum of squared log errors of the step time, each over
`ROW_ERROR`, plus a weak prior that keeps a constant in reach when the rows say
little of it. Deterministic; the same rows give the same constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .analytic import step_work
from .catalog import Family, instance_type
from .compute import AUTO_CAST, TF32
from .published_rows import PublishedRow
from .step import Efficiency, step_time

ROW_ERROR = 0.1
"""Expected error of one row (log): what the model leaves out, and the rows' own spread of 7 %."""

PRIOR_EFFICIENCY = 0.3
PRIOR_WIDTH = 1.0
"""Prior of every fitted efficiency, in log-odds: 0.3, between 0.14 and 0.54 within one width."""

P4D_LINK_EFFICIENCY = 0.375
"""Assumption: NCCL reaches 225 of the 300 GB/s an A100 has in one direction (600 both). No row tells."""
P4D_OVERLAP = 0.5
"""Assumption: DDP hides collectives behind half of the step (the backward pass, less its last bucket)."""
TRN1_OVERLAP = 0.0
"""Assumption: collectives end the step; what does overlap is in the fitted link efficiency."""


def efficiency_from(family: Family, values: Sequence[float]) -> Efficiency:
    """The family's constants from fitted ones: (compute, memory, link) or (compute, memory)."""
    if family == "trn1":
        return Efficiency(values[0], values[1], values[2], TRN1_OVERLAP)
    return Efficiency(values[0], values[1], P4D_LINK_EFFICIENCY, P4D_OVERLAP)


def predicted_seconds(row: PublishedRow, efficiency: Efficiency) -> float:
    """The model's time of one microbatch of the row."""
    instance = instance_type(row.instance_type)
    precision = AUTO_CAST if instance.family == "trn1" else TF32
    return step_time(step_work(row), instance, precision, efficiency, row.nodes).total_s


def relative_error(row: PublishedRow, efficiency: Efficiency) -> float:
    """(predicted - published) / published, of the time of a microbatch."""
    return predicted_seconds(row, efficiency) / row.seconds_per_microbatch - 1


def fit(rows: Sequence[PublishedRow], family: Family) -> Efficiency:
    """The constants that fit these rows best."""
    size = 3 if family == "trn1" else 2

    def residuals(point: list[float]) -> list[float]:
        efficiency = efficiency_from(family, [_sigmoid(value) for value in point])
        errors = [
            math.log(predicted_seconds(row, efficiency) / row.seconds_per_microbatch) / ROW_ERROR
            for row in rows
        ]
        return errors + [(value - _logit(PRIOR_EFFICIENCY)) / PRIOR_WIDTH for value in point]

    best = _least_squares(residuals, [_logit(PRIOR_EFFICIENCY)] * size)
    return efficiency_from(family, [_sigmoid(value) for value in best])


def leave_one_out(rows: Sequence[PublishedRow], family: Family) -> tuple[float, ...]:
    """The relative error of each row, predicted with constants fitted to all others."""
    return tuple(
        relative_error(row, fit([*rows[:index], *rows[index + 1 :]], family))
        for index, row in enumerate(rows)
    )


def _sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def _logit(value: float) -> float:
    return math.log(value / (1 - value))


def _least_squares(residuals: Callable[[list[float]], list[float]], start: list[float]) -> list[float]:
    """Levenberg-Marquardt with a forward-difference Jacobian; for two or three unknowns."""
    point, damping = list(start), 1e-2
    current = residuals(point)
    cost = math.fsum(value * value for value in current)
    for _ in range(100):
        columns = []
        for index in range(len(point)):
            shifted = list(point)
            shifted[index] += 1e-6
            columns.append([(a - b) / 1e-6 for a, b in zip(residuals(shifted), current, strict=True)])
        normal = [[math.fsum(a * b for a, b in zip(x, y, strict=True)) for y in columns] for x in columns]
        gradient = [math.fsum(a * b for a, b in zip(x, current, strict=True)) for x in columns]
        for index in range(len(point)):
            normal[index][index] += damping
        step = _solve(normal, gradient)
        candidate = [value - delta for value, delta in zip(point, step, strict=True)]
        values = residuals(candidate)
        candidate_cost = math.fsum(value * value for value in values)
        if candidate_cost <= cost:
            converged = max(map(abs, step)) < 1e-9
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
