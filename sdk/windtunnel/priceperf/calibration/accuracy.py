"""The model held against published rows: each predicted, with its error and its interval.

Three errors a row. *In sample*: the constants as shipped. *Left out*: constants fitted to
all rows but this one (and others of exactly the same configuration). *Family left out*:
constants fitted to the other families of models only. For a row that took no part in the
calibration the first two are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean, median

from ..errors import PricePerfError
from ..instances import instance_type
from ..model.described_step import TrainingStep, training_step
from ..model.engines import Constants
from ..model.intervals import measured_coverage
from .calibrations import CALIBRATIONS, Calibration, calibration_of
from .described_range import description_check, is_known
from .fitting import fit, of_other_families, same_configuration, step_s
from .row_reader import PublishedRow, ReadRow

P90 = 0.9


@dataclass(frozen=True)
class RowCheck:
    """One row, predicted. Throughputs in sequences per second, errors relative to the published one.

    ``reason`` is why there is no prediction (then all figures are None). ``low`` and ``high``:
    the 80 % interval. ``inside``: whether the published figure lies in the interval around the
    left-out prediction. ``calibrated``: the shipped constants were fitted to it, among others.
    """

    config: str
    instance_type: str
    calibration: str | None
    model_family: str | None
    published: float | None
    published_range: tuple[float, float] | None = None
    predicted: float | None = None
    error: float | None = None
    left_out: float | None = None
    family_left_out: float | None = None
    low: float | None = None
    high: float | None = None
    inside: bool | None = None
    calibrated: bool = False
    step: TrainingStep | None = None
    outside_range: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class Errors:
    """Absolute relative errors of some rows."""

    rows: int
    mean: float
    median: float
    p90: float
    largest: float

    @classmethod
    def of(cls, errors: Sequence[float]) -> Errors:
        """From signed errors, at least one."""
        ordered = sorted(map(abs, errors))
        rank = math.ceil(P90 * len(ordered))
        return cls(len(ordered), mean(ordered), median(ordered), ordered[rank - 1], ordered[-1])


@dataclass(frozen=True)
class CalibrationSummary:
    """The errors of one calibration's rows. ``coverage``: part of left-out rows inside their interval."""

    calibration: str
    in_sample: Errors
    left_out: Errors
    family_left_out: Errors
    coverage: float
    family_coverage: float | None


@dataclass(frozen=True)
class Validation:
    """All rows in their order, and a summary for each calibration that has any."""

    rows: tuple[RowCheck, ...]
    summaries: tuple[CalibrationSummary, ...]
    built_in: bool

    @property
    def not_predicted(self) -> tuple[RowCheck, ...]:
        """Rows without a prediction; each has its reason."""
        return tuple(row for row in self.rows if row.predicted is None)


def validate_built_in() -> Validation:
    """Every row of the calibration."""
    checks = [_check(row, calibration) for calibration in CALIBRATIONS.values() for row in calibration.rows]
    return _validation(checks, built_in=True)


def validate_rows(rows: Sequence[ReadRow]) -> Validation:
    """Rows of any table, with the constants of the built-in calibration."""
    checks = []
    for read in rows:
        if read.row is None:
            checks.append(
                RowCheck(read.config, read.instance_type, None, None, read.published, reason=read.reason)
            )
            continue
        try:
            calibration = calibration_of(instance_type(read.row.instance_type))
            checks.append(_check(read.row, calibration, read.notes))
        except PricePerfError as error:
            checks.append(
                RowCheck(read.config, read.instance_type, None, None, read.published, reason=str(error))
            )
    return _validation(checks, built_in=False)


def _check(row: PublishedRow, calibration: Calibration, notes: tuple[str, ...] = ()) -> RowCheck:
    twins = frozenset(index for index, other in enumerate(calibration.rows) if same_configuration(row, other))
    time_s = step_s(row, calibration.constants)
    predicted = row.training.global_batch / time_s
    known = is_known(calibration, row.training)
    check = description_check(calibration, row.training, row.nodes)
    same = [other.published for other in calibration.rows if same_configuration(row, other)]
    different = [f"{value:g}" for value in same if value is not None and value != row.published]
    if different:
        notes = (*notes, f"the same configuration is also published as {' and '.join(different)}")
    if not known:
        notes = (*notes, "a model that is not in the calibration: the interval is that of left-out families")

    def error_with(constants: Constants) -> float | None:
        if row.published is None:
            return None
        return row.training.global_batch / step_s(row, constants) / row.published - 1

    left_out = error_with(_without(calibration.key, twins) if twins else calibration.constants)
    return RowCheck(
        row.config,
        row.instance_type,
        calibration.key,
        row.family,
        row.published,
        row.published_range,
        predicted,
        error_with(calibration.constants),
        left_out,
        error_with(_without_family(calibration.key, row.family)),
        predicted * math.exp(-check.log_slow),
        predicted * math.exp(check.log_fast),
        None if left_out is None else abs(math.log1p(left_out)) <= check.log_slow,
        bool(twins),
        training_step(row.training, instance_type(row.instance_type), calibration.constants, row.nodes),
        check.outside,
        notes,
    )


def _validation(checks: Sequence[RowCheck], *, built_in: bool) -> Validation:
    summaries = []
    for key in CALIBRATIONS:
        rows = [check for check in checks if check.calibration == key and check.error is not None]
        if rows:
            summaries.append(_summary(key, rows, built_in=built_in))
    return Validation(tuple(checks), tuple(summaries), built_in)


def _summary(key: str, rows: Sequence[RowCheck], *, built_in: bool) -> CalibrationSummary:
    def errors(part: Callable[[RowCheck], float | None]) -> list[float]:
        return [error for row in rows if (error := part(row)) is not None]

    left_out, family_left_out = errors(lambda row: row.left_out), errors(lambda row: row.family_left_out)
    # Of the calibration's own rows each is held against the interval that the others give.
    coverage = measured_coverage(left_out) if built_in else sum(bool(row.inside) for row in rows) / len(rows)
    return CalibrationSummary(
        key,
        Errors.of(errors(lambda row: row.error)),
        Errors.of(left_out),
        Errors.of(family_left_out),
        coverage,
        measured_coverage(family_left_out) if built_in else None,
    )


@cache
def _without(key: str, indices: frozenset[int]) -> Constants:
    """Constants fitted without these rows of the calibration."""
    calibration = CALIBRATIONS[key]
    rows = [row for index, row in enumerate(calibration.rows) if index not in indices]
    return fit(rows, key, calibration.constants)


@cache
def _without_family(key: str, name: str) -> Constants:
    calibration = CALIBRATIONS[key]
    rows = of_other_families(calibration.rows, name)
    if len(rows) == len(calibration.rows):
        return calibration.constants  # a family that has no rows in the calibration was never in it
    return fit(rows, key)
