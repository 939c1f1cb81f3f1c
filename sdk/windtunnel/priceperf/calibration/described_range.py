"""How far a description lies from the published rows, and the interval around its prediction."""

from __future__ import annotations

from functools import cache

from ..model.intervals import Range, RangeCheck, check_ranges, half_width
from ..model.training_settings import Training
from .calibrations import Calibration
from .row_reader import PublishedRow

_UNITS = {
    "model size": "parameters",
    "sequence length": "tokens",
    "tokens of a microbatch": "tokens",
    "cluster size": "instances",
    "tensor parallelism": "workers",
    "pipeline parallelism": "stages",
}


def is_known(calibration: Calibration, training: Training) -> bool:
    """Whether a row of the calibration trained the same model."""
    return training.architecture in _models(calibration.rows)


def description_check(calibration: Calibration, training: Training, instance_count: int) -> RangeCheck:
    """Compare a description with the range of all rows.

    The interval is the quantile of left-out rows' errors; for a model that no row trained, of those left
    out with all rows of their family of models.
    """
    known = is_known(calibration, training)
    width = _width(calibration.errors if known else calibration.family_errors)
    values = _quantities(training, instance_count)
    return check_ranges(_ranges(calibration.rows), values, width, width)


_width = cache(half_width)


@cache
def _models(rows: tuple[PublishedRow, ...]) -> frozenset[object]:
    return frozenset(row.training.architecture for row in rows)


@cache
def _ranges(rows: tuple[PublishedRow, ...]) -> tuple[Range, ...]:
    quantities = [_quantities(row.training, row.nodes) for row in rows]
    return tuple(
        Range.of(name, unit, [values[name] for values in quantities]) for name, unit in _UNITS.items()
    )


def _quantities(training: Training, instance_count: int) -> dict[str, float]:
    return {
        "model size": training.parameters,
        "sequence length": training.sequence_length,
        "tokens of a microbatch": training.tokens,
        "cluster size": instance_count,
        "tensor parallelism": training.tensor_parallel,
        "pipeline parallelism": training.pipeline_parallel,
    }
