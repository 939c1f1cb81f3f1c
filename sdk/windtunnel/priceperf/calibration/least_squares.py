"""Fit constants with priors to rows by damped least squares, also with groups of rows left out.

The fit minimises the sum of squared log errors divided by `ROW_ERROR` (large ones count less, as in Huber's loss),
plus the squared distance of each constant from its prior, in logs. The same rows always give the same constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

ROW_ERROR = 0.08
"""Expected log error of one row: the rows' own spread of 7 %, and effects that the model leaves out."""

_Row = TypeVar("_Row")
_Fitted = TypeVar("_Fitted")


@dataclass(frozen=True)
class Prior:
    """The assumption on a constant before any row is used: ``value``, times or divided by e^``width``."""

    value: float
    width: float
    why: str
    rows: str


def fitted_values(
    priors: Mapping[str, Prior],
    log_errors: Callable[[Mapping[str, float]], Iterable[float]],
    start: Mapping[str, float],
    most: Mapping[str, float],
) -> dict[str, float]:
    """The values of the constants that fit best.

    Args:
        priors: by the constants' names.
        log_errors: log of modelled over published, row by row, with these values.
        start: values where the search begins; the priors' values for constants that it lacks.
        most: upper limits of constants; for constants that it lacks 1.
    """

    def values(point: Sequence[float]) -> dict[str, float]:
        return {
            name: min(prior.value * math.exp(distance * prior.width), most.get(name, 1.0))
            for (name, prior), distance in zip(priors.items(), point, strict=True)
        }

    def residuals(point: list[float]) -> list[float]:
        return [_bounded(error / ROW_ERROR) for error in log_errors(values(point))] + point

    first = [
        math.log(start.get(name, prior.value) / prior.value) / prior.width for name, prior in priors.items()
    ]
    return values(_least_squares(residuals, first))


def leave_out(
    rows: Sequence[_Row],
    together: Callable[[_Row], Hashable],
    fit: Callable[[Sequence[_Row], _Fitted | None], _Fitted],
) -> dict[Hashable, _Fitted]:
    """For each group (``together`` gives that of a row), the result of ``fit`` without its rows.

    ``fit``: takes rows, and where the search begins.
    """
    whole = fit(rows, None)
    return {
        name: fit([row for row in rows if together(row) != name], whole)
        for name in dict.fromkeys(map(together, rows))
    }


def _bounded(residual: float) -> float:
    """A residual that grows only like a square root beyond `_FAR`, so that its square is like Huber's loss."""
    return math.copysign(_FAR * math.sqrt(2 * (math.hypot(1, residual / _FAR) - 1)), residual)


_FAR = 2.0
"""Multiple of the expected error from which on a row counts less: it may have trained something else than was read."""


_STUCK = 1e6  # if even steps this small do not improve the fit, the point is at a kink (of a max or min)


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
            converged = max(map(abs, step)) < 1e-4 or cost - candidate_cost < 1e-7 * cost
            point, current, cost, damping = candidate, values, candidate_cost, damping / 10
            if converged:
                break
        else:
            damping *= 10
            if damping > _STUCK:
                break
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
