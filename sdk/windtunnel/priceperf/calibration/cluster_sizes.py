"""How much of a prediction's error two clusters of one instance type do not share, measured from published rows.

If a model is too fast for a job on 4 instances, it mostly is for the same job on 16. So it is surer which of the two
costs less than what either costs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from ..model.intervals import group_quantile
from .left_out import fitted, kind_of, log_errors, measured_width
from .row_reader import PublishedRow

_Job = tuple[str, str, Hashable]
"""A calibration, a software and a model."""


def own_part() -> float:
    """The part of an error that a prediction does not share with one for another number of the same instances.

    The correlation of the two errors is 1 minus its square. `measured` measures it.
    """
    found: float = fitted()["own_part"]
    return found


def measured() -> float:
    """`own_part`, from the errors in ``fitted.json``: the conformal quantile over the groups of `differences`."""
    return group_quantile([*differences().values()])


def differences() -> Mapping[_Job, Sequence[float]]:
    """For each model and software with rows of several numbers of instances: how far the errors of two such rows lie
    apart, for each pair. 1 is the distance that independent errors would have at the ends of their intervals.
    """
    pairs = {job: [*_apart(rows)] for job, rows in _jobs().items()}
    return {job: found for job, found in pairs.items() if found}


def _apart(rows: Iterable[tuple[PublishedRow, float]]) -> Iterator[float]:
    for (one, first), (other, second) in combinations(rows, 2):
        if one.nodes != other.nodes:
            widths = (measured_width("source", kind_of(row), None) for row in (one, other))
            yield abs(first - second) / math.hypot(*widths)


def _jobs() -> Mapping[_Job, list[tuple[PublishedRow, float]]]:
    """All rows with the log errors that they have if their source is left out."""
    found: defaultdict[_Job, list[tuple[PublishedRow, float]]] = defaultdict(list)
    for row, error in log_errors("source"):
        found[row.calibration, row.stack, row.training.architecture].append((row, error))
    return found
