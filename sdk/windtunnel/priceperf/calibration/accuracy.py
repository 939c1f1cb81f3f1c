"""The comparison of the model with published rows: the prediction of each, its errors and its interval.

A row has four errors. *In sample*: by the constants as shipped. *Left out*, *family left out*, *source left out*: by
constants fitted without the row and its group (`left_out`). Whether a published figure lies inside its interval is
tested with an interval from other groups of rows. For a row of a user's file that took no part in the calibration all
four errors are the same. Rows to which no constant is fitted (`published_rows.elsewhere`) count as left-out sources, or
as left-out families if the constants are fitted to other rows of their software (`left_out.levels_of`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import mean, median
from typing import Any

from ..errors import PricePerfError
from ..model.described_step import training_step
from ..model.intervals import RangeCheck
from ..model.plain_script import is_compiled, is_plain
from ..model.step_time import StepTime
from .calibrations import CALIBRATIONS, Calibration, calibration_of
from .described_range import description_check
from .fitting import same_configuration, step_s
from .left_out import (
    LEVELS,
    Group,
    LeftOutErrors,
    Level,
    fitted,
    group_of,
    kind_of,
    levels_of,
    log_error_as_stranger,
)
from .published_rows import elsewhere, is_fitted
from .row_reader import PublishedRow, ReadRow
from .software import log_speed as log_speed_of_software
from .software import software_of, usual_log_speed
from .versions import log_speed_of_row

P90 = 0.9


@dataclass(frozen=True)
class RowCheck:
    """One row and its prediction. Throughputs in sequences per second, errors relative to the published throughput.

    ``reason``: why there is no prediction (then all figures are None). ``kind``: the rows with which it is summed up
    (`left_out.kind_of`). ``low`` and ``high``: the 80 % interval. ``inside``: whether the published figure lies in the
    interval around the left-out prediction; ``covered``: the same for each of `left_out.LEVELS`. ``groups``: the
    groups left out at each. ``calibrated``: whether the shipped constants are fitted to it. ``by_software``: the
    error with the software's speed on other models (`software.log_speed`), None if there are no other models;
    ``by_software_inside``: whether that error lies in the interval from other such software.
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
    source_left_out: float | None = None
    by_software: float | None = None
    by_software_inside: bool | None = None
    low: float | None = None
    high: float | None = None
    inside: bool | None = None
    covered: tuple[bool, ...] = ()
    groups: tuple[Group, ...] = ()
    kind: str | None = None
    calibrated: bool = False
    step: StepTime | None = None
    outside_range: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class Errors:
    """A summary of the absolute relative errors of some rows."""

    rows: int
    mean: float
    median: float
    p90: float
    largest: float

    @classmethod
    def of(cls, errors: Sequence[float]) -> Errors:
        """Summarise signed errors, at least one."""
        ordered = sorted(map(abs, errors))
        rank = math.ceil(P90 * len(ordered))
        return cls(len(ordered), mean(ordered), median(ordered), ordered[rank - 1], ordered[-1])


@dataclass(frozen=True)
class CalibrationSummary:
    """The errors of one kind of rows (`left_out.kind_of`).

    ``coverage``: part of the rows inside their interval, for each of `left_out.LEVELS`; for a user's file three times
    the same figure. ``groups``: number of groups at each level; rows of a group have similar errors, so with few
    groups coverage says little. ``group_coverage``: part of a group's rows inside, averaged over the groups, which is
    what an interval promises. Both are 0 for a user's file. The second and third figures include rows to which no
    constant is fitted. ``elsewhere``: only these; ``by_software``: those with `RowCheck.by_software`; None: no rows.
    """

    kind: str
    calibration: str
    in_sample: Errors
    left_out: Errors
    family_left_out: Errors
    source_left_out: Errors
    coverage: tuple[float, ...]
    groups: tuple[int, ...]
    group_coverage: tuple[float, ...]
    elsewhere: SoftwareSummary | None = None
    by_software: SoftwareSummary | None = None


@dataclass(frozen=True)
class SoftwareSummary:
    """Rows to which no constant is fitted. ``coverage``: part of a software's rows inside, averaged over ``stacks``."""

    errors: Errors
    stacks: int
    coverage: float


@dataclass(frozen=True)
class Validation:
    """All rows in their order, and a summary for each kind of rows.

    ``elsewhere``: the built-in rows to which no constant is fitted.
    """

    rows: tuple[RowCheck, ...]
    summaries: tuple[CalibrationSummary, ...]
    built_in: bool
    elsewhere: tuple[RowCheck, ...] = ()

    @property
    def not_predicted(self) -> tuple[RowCheck, ...]:
        """The rows without a prediction; ``reason`` says why."""
        return tuple(row for row in self.rows if row.predicted is None)


@cache
def validate_built_in() -> Validation:
    """Validate the built-in rows."""
    checks = [
        replace(_left_out(row, calibration, errors, LEVELS, row.lacks, LEVELS[0]), calibrated=True)
        for calibration in CALIBRATIONS.values()
        for row, errors in calibration.rows_with_errors
    ]
    others = [
        _elsewhere(row, calibration, entry)
        for calibration, entry in zip(CALIBRATIONS.values(), fitted()["calibrations"].values(), strict=True)
        for row in elsewhere(calibration.key)
        if row.config in entry["elsewhere"]
    ]
    return _validation(checks, others, built_in=True)


def validate_rows(rows: Sequence[ReadRow]) -> Validation:
    """Validate the rows of a user's table with the built-in calibrations."""
    checks = []
    for read in rows:
        reason = read.reason
        if read.row is not None:
            try:
                checks.append(_of_file(read.row, read))
                continue
            except PricePerfError as error:
                reason = str(error)
        checks.append(RowCheck(read.config, read.instance_type, None, None, read.published, reason=reason))
    return _validation(checks, (), built_in=False)


def _elsewhere(row: PublishedRow, calibration: Calibration, entry: Mapping[str, Any]) -> RowCheck:
    lacks, errors = _lacks(row, calibration), LeftOutErrors(*entry["elsewhere"][row.config])
    errors = errors._replace(source=math.expm1(log_error_as_stranger(row, errors.source)))
    found = _left_out(row, calibration, errors, levels_of(row), lacks, "source")
    error = entry["by_software"].get(row.config)
    if error is None:
        return found
    check = _interval(row, calibration, "software", but=group_of(row, "software"), lacks=lacks)
    return replace(found, by_software=error, by_software_inside=abs(math.log1p(error)) <= check.log_slow)


def _left_out(
    row: PublishedRow,
    calibration: Calibration,
    errors: LeftOutErrors,
    levels: Sequence[Level],
    lacks: Sequence[str],
    shown: Level,
) -> RowCheck:
    """Check a row by its left-out ``errors``. ``levels``: those that count; ``shown``: the one of the interval."""
    groups = tuple(group_of(row, level) for level in LEVELS)
    judged = [
        _interval(row, calibration, level, but=group, lacks=lacks)
        for level, group in zip(LEVELS, groups, strict=True)
    ]
    covered = tuple(
        abs(math.log1p(error)) <= check.log_slow for error, check in zip(errors, judged, strict=True)
    )
    predicted = row.training.global_batch / step_s(row, calibration.constants)
    index = LEVELS.index(shown)
    return replace(
        _check(row, calibration, predicted, judged[index]),
        left_out=errors.alone if "alone" in levels else None,
        family_left_out=errors.family if "family" in levels else None,
        source_left_out=errors.source,
        inside=covered[index],
        covered=covered,
        groups=groups,
    )


def _lacks(row: PublishedRow, calibration: Calibration) -> tuple[str, ...]:
    """What widens the interval of a single figure; on NeuronCores also that it is of one Neuron version."""
    if calibration.is_neuron:
        return (*row.lacks, "neuron_version")
    return (*row.lacks, "torch_compile") if is_compiled(row.stack) else row.lacks


def _of_file(row: PublishedRow, read: ReadRow) -> RowCheck:
    calibration = calibration_of(row.instance)
    notes = [*read.notes]
    if calibration.is_neuron and not row.neuron_version:
        notes.append("neuron_version not given: the usual one is predicted")
    software = software_of(row)
    level, why = _level(row, calibration, software)
    speed = log_speed_of_software(
        software, kind_of(row), row.training, but=lambda other: same_configuration(row, other)
    )
    if speed is None:
        speed = usual_log_speed(row, software)
        why += f"; predicted {math.expm1(speed):+.0%} beside the model, as is usual there" if speed else ""
    else:
        level = "software"
        why = (
            f"trained by {software}: predicted {math.expm1(speed):+.0%} beside the model, as its other rows were; "
            "the interval is that of new models by software whose speed is known"
        )
    predicted = row.training.global_batch / step_s(row, calibration.constants) * math.exp(speed)
    interval = _interval(row, calibration, level, but=group_of(row, level), lacks=_lacks(row, calibration))
    twins = [pair for pair in calibration.rows_with_errors if same_configuration(row, pair[0])]
    different = [f"{twin.published:g}" for twin, _ in twins if twin.published != row.published]
    if different:
        notes.append(f"the same configuration is also published as {' and '.join(different)}")
    found = _check(row, calibration, predicted, interval, (*notes, why))
    if row.published is None:
        return found
    left_out: list[float | None] = [found.error] * len(LEVELS)
    if twins:  # the left-out errors of its twin apply to it, too
        published = row.published
        twin, errors = min(twins, key=lambda item: abs((item[0].published or 0.0) - published))
        beside = (twin.published or 0.0) * math.exp(_log_speed(row) - _log_speed(twin)) / published
        left_out = [beside * (1 + error) - 1 for error in errors]
    inside = found.low is not None and found.high is not None and found.low <= row.published <= found.high
    return replace(
        found,
        left_out=left_out[0],
        family_left_out=left_out[1],
        source_left_out=left_out[2],
        inside=inside,
        covered=(inside,) * len(LEVELS),
        calibrated=bool(twins),
    )


def _level(row: PublishedRow, calibration: Calibration, software: str | None) -> tuple[Level, str]:
    """The level of left-out rows that it is like, and a note on it. ``alone`` is only for rows of one table."""
    if software is not None and is_fitted(software, calibration.key):
        return "family", f"trained by {software}, as other rows: the interval is that of left-out families"
    if is_plain(row.stack):
        return "script", "a plain script: on p5 with the interval of measured ones, else of left-out sources"
    known = any(each.training.architecture == row.training.architecture for each in calibration.rows)
    stranger = (
        "software that no constant is fitted to" if row.stack or software else "software that is not told"
    )
    model = f"a model that is {'' if known else 'not '}in the calibration"
    return "source", f"{model}, by {stranger}: the interval is that of left-out sources"


def _log_speed(row: PublishedRow) -> float:
    return log_speed_of_row(row.config, row.neuron_version)


def _interval(
    row: PublishedRow,
    calibration: Calibration,
    level: Level,
    *,
    but: Group,
    lacks: Sequence[str],
) -> RangeCheck:
    return description_check(
        calibration, row.training, row.instance, row.nodes, level=level, but=but, lacks=lacks
    )


def _check(
    row: PublishedRow,
    calibration: Calibration,
    predicted: float,
    check: RangeCheck,
    notes: tuple[str, ...] = (),
) -> RowCheck:
    step = training_step(row.training, row.instance, calibration.constants, row.nodes)
    return RowCheck(
        config=row.config,
        instance_type=row.instance_type,
        calibration=calibration.key,
        model_family=row.family,
        published=row.published,
        published_range=row.published_range,
        predicted=predicted,
        error=None if row.published is None else predicted / row.published - 1,
        low=predicted * math.exp(-check.log_slow),
        high=predicted * math.exp(check.log_fast),
        kind=kind_of(row),
        # Scaled to the prediction, which has the speed of its software.
        step=step.times(row.training.global_batch / predicted / step.total_s),
        outside_range=check.outside,
        notes=notes,
    )


def _validation(checks: Sequence[RowCheck], others: Sequence[RowCheck], *, built_in: bool) -> Validation:
    kinds = dict.fromkeys(check.kind for check in checks if check.error is not None)
    summaries = [
        _summary(
            [check for check in checks if check.kind == kind and check.error is not None],
            [check for check in others if check.kind == kind],
        )
        for kind in sorted(filter(None, kinds), key=kind_order)
    ]
    return Validation(tuple(checks), tuple(summaries), built_in, tuple(others))


def kind_order(kind: str) -> tuple[int, str]:
    """A key that sorts kinds in the order of their calibrations."""
    return list(CALIBRATIONS).index(kind.removesuffix("_cluster")), kind


def _summary(rows: Sequence[RowCheck], others: Sequence[RowCheck]) -> CalibrationSummary:
    def errors(judged: Sequence[RowCheck], part: Callable[[RowCheck], float | None]) -> Errors:
        return Errors.of([error for row in judged if (error := part(row)) is not None])

    at = [rows, [*rows, *(row for row in others if row.family_left_out is not None)], [*rows, *others]]
    groups = [_inside_by_group(judged, level) for level, judged in enumerate(at)]
    return CalibrationSummary(
        kind=rows[0].kind or "",
        calibration=rows[0].calibration or "",
        in_sample=errors(rows, lambda row: row.error),
        left_out=errors(rows, lambda row: row.left_out),
        family_left_out=errors(rows, lambda row: row.family_left_out),
        source_left_out=errors(rows, lambda row: row.source_left_out),
        coverage=tuple(mean(row.covered[level] for row in judged) for level, judged in enumerate(at)),
        groups=tuple(map(len, groups)),
        group_coverage=tuple(mean(map(mean, found.values())) if found else 0.0 for found in groups),
        elsewhere=_of_software(others, lambda row: row.source_left_out, lambda row: row.covered[-1]),
        by_software=_of_software(
            others, lambda row: row.by_software, lambda row: bool(row.by_software_inside)
        ),
    )


def _of_software(
    rows: Sequence[RowCheck], error: Callable[[RowCheck], float | None], inside: Callable[[RowCheck], bool]
) -> SoftwareSummary | None:
    stacks: defaultdict[Group, list[bool]] = defaultdict(list)
    errors = []
    for row in rows:
        if (value := error(row)) is not None:
            errors.append(value)
            stacks[row.groups[-1]].append(inside(row))
    return (
        SoftwareSummary(Errors.of(errors), len(stacks), mean(map(mean, stacks.values()))) if errors else None
    )


def _inside_by_group(rows: Sequence[RowCheck], level: int) -> dict[Group, list[bool]]:
    found: defaultdict[Group, list[bool]] = defaultdict(list)
    for row in rows:
        if row.groups:
            found[row.groups[level]].append(row.covered[level])
    return found
