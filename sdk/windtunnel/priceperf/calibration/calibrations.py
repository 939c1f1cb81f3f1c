"""The calibrations: fitted constants, the rows they come from, and their errors.

The same model (`described_step`, `engines`, `collectives`) is used for all kinds of accelerators.
`fitting.PRIORS` says which constants are fitted, and to which rows. `fitted.json` holds the constants and their
errors, as scripts/fit_calibrations.py wrote them; tests repeat the fit. All published rows are used.

The form of the model was chosen when two thirds of these rows were known. Rows of new models and new sources are the
fair test; leave-one-source-out (`left_out`) is the nearest to it that these rows allow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import mean, median
from typing import Any

from ..errors import NotCalibrated
from ..instances import CATALOG, InstanceType, instance_type
from ..model.counted_step import step_time
from ..model.described_as_counted import step_work
from ..model.engines import Constants
from ..model.intervals import Range, RangeCheck, check_ranges, group_quantile
from ..model.precision import AUTO_CAST, TF32
from .fitting import relative_error
from .left_out import LeftOutErrors, fitted, kind_of_run, width
from .published_rows import rows_of
from .row_reader import PublishedRow
from .versions import log_speed_of_row

VERSION_SPREAD = 0.07
"""Spread of one configuration's throughput between Neuron versions: no model can have a smaller error."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """The constants of one kind of accelerator, with the relative errors of predicted throughputs of left-out rows."""

    key: str
    """The value of `InstanceType.calibration`."""
    label: str
    """The name that users see."""
    constants: Constants
    rows: tuple[PublishedRow, ...]
    errors: tuple[float, ...]
    """Leave-one-out: each row is predicted by constants fitted without it and its near-twins."""
    family_errors: tuple[float, ...]
    """Leave-one-family-out: each row is predicted by constants fitted to the other families of models."""
    source_errors: tuple[float, ...]
    """Leave-one-source-out: each row is predicted by constants fitted to the rows of other software."""
    elsewhere_errors: Mapping[str, tuple[float, ...]]
    """Errors of rows to which no constant is fitted (`published_rows.elsewhere`), by `left_out.kind_of`. They are
    predicted with the usual speed of such software."""
    by_software_errors: tuple[float, ...]
    """Errors of the rows in `elsewhere_errors` whose software also trained other models, predicted with its speed on
    these (`software.log_speed`)."""
    outside_check: float
    """Published / modelled step time of the one published job that is a plain script, not a tuned
    benchmark (`published.bert_jobs`: AWS's BERT base classification). It took no part in the fit.
    1: no such job was published for this accelerator."""
    traced_check: float
    """The same if the host's tracing time is known, from a rehearsal of that job."""
    ranges: tuple[Range, ...]
    """The ranges of the rows that a rehearsed job's interval comes from (`ranges.counted_ranges`)."""
    described_ranges: tuple[Range, ...]
    """The same for a described job."""
    script_ranges: tuple[Range, ...]
    """The same for a described job that is a plain script."""
    checked_at: Mapping[str, float]
    """Quantities of the job in `outside_check`, by their names in `ranges`; empty without such a job."""

    @property
    def is_neuron(self) -> bool:
        """Whether it is for NeuronCores, whose scripts the host traces for XLA."""
        return instance_type(self.rows[0].instance_type).is_neuron

    @property
    def rows_with_errors(self) -> Iterator[tuple[PublishedRow, LeftOutErrors]]:
        """Each row with its errors."""
        errors = map(LeftOutErrors, self.errors, self.family_errors, self.source_errors)
        return zip(self.rows, errors, strict=True)

    @property
    def mean_error(self) -> float:
        """Mean of the absolute leave-one-out errors."""
        return mean(map(abs, self.errors))

    @property
    def median_error(self) -> float:
        """Median of the absolute leave-one-out errors."""
        return median(map(abs, self.errors))

    @property
    def max_error(self) -> float:
        """Largest absolute leave-one-out error."""
        return max(map(abs, self.errors))

    @property
    def unseen_family_error(self) -> float:
        """Mean of the absolute leave-one-family-out errors: for other models by software that the constants know."""
        return mean(map(abs, self.family_errors))

    @property
    def by_software_error(self) -> float | None:
        """Mean of the absolute errors for new models by software whose speed is known; None: there are no such rows."""
        return mean(map(abs, self.by_software_errors)) if self.by_software_errors else None

    def unseen_error(self, nodes: int) -> float:
        """Mean of the absolute errors of `elsewhere_errors`, for one node or for several."""
        return mean(map(abs, self.elsewhere_errors[kind_of_run(self.key, nodes)]))

    @cached_property
    def counts_rows(self) -> tuple[PublishedRow, ...]:
        """The rows that are like a rehearsal: data-parallel, without recomputation, with eager attention."""
        return tuple(
            row
            for row in self.rows
            if row.training.workers == row.training.data_parallel
            and row.training.recompute == "none"
            and row.training.attention == "eager"
        )

    @cached_property
    def counts_errors(self) -> tuple[float, ...]:
        """Errors of `counts_rows` predicted from the counts of a rehearsal; those of the A100 if there are no rows."""
        like = self._counted_like
        return tuple(_counts_error(row, like.constants) for row in like.counts_rows)

    @property
    def _counted_like(self) -> Calibration:
        return self if self.counts_rows else CALIBRATIONS["a100"]

    @cached_property
    def log_fast(self) -> float:
        """How much faster than modelled from counts a step may be, in logs: 0.2 is down to 1/1.22 of the time.

        If rehearsed scripts were measured, their width. Otherwise that of plain scripts, plus the width that counts
        add to a description, and on trn1 the spread of single Neuron versions.
        """
        if self.key in fitted()["rehearsed"]:
            return width("rehearsed", self.key)
        like = self._counted_like
        version = fitted()["widenings"]["neuron_version"] if self.is_neuron else 0.0
        return math.hypot(width("script", self.key), version, _counting_width(like))

    @property
    def log_slow(self) -> float:
        """How much slower it may be, in logs: as `log_fast`, but at least as much as `outside_check`."""
        return self.log_slower(traced=False)

    def log_slower(self, *, traced: bool) -> float:
        """`log_slow`; smaller if ``traced``: a rehearsal has measured how long the host traces a step."""
        return max(self.log_fast, math.log(self.traced_check if traced else self.outside_check))


@cache
def _with_checked(calibration: Calibration, traced: bool) -> tuple[Range, ...]:
    """The ranges, extended to AWS's published plain script; on trn1 only if the job's host was timed, too."""
    if calibration.is_neuron and not traced:
        return calibration.ranges
    return tuple(
        replace(found, low=min(found.low, value), high=max(found.high, value))
        if (value := calibration.checked_at.get(found.quantity)) is not None
        else found
        for found in calibration.ranges
    )


def check_range(
    calibration: Calibration,
    values: Mapping[str, float | None],
    *,
    traced: bool = False,
    from_specification: bool = False,
) -> RangeCheck:
    """Compare a rehearsed job's quantities with the calibrated ranges, and widen the interval outside them.

    ``traced``: the rehearsal measured how long the host traces a step. ``from_specification``: the calibration was
    fitted to another accelerator, which widens the interval.
    """
    extra = fitted()["widenings"]["specification"] if from_specification else 0.0
    fast, slow = calibration.log_fast, calibration.log_slower(traced=traced)
    ranges = _with_checked(calibration, traced)
    return check_ranges(ranges, values, math.hypot(fast, extra), math.hypot(slow, extra))


def _counts_error(row: PublishedRow, constants: Constants) -> float:
    precision = AUTO_CAST if row.instance.is_neuron else TF32
    time = step_time(step_work(row.training), row.instance, precision, constants, row.nodes)
    speed = math.exp(log_speed_of_row(row.config, row.neuron_version))
    return row.step_s / row.training.microbatches / time.total_s * speed - 1


@cache
def _counting_width(calibration: Calibration) -> float:
    """Log width of the difference between predictions from counts and from descriptions."""
    apart = [
        abs(math.log((1 + counted) / (1 + relative_error(row, calibration.constants))))
        for row, counted in zip(calibration.counts_rows, calibration.counts_errors, strict=True)
    ]
    return group_quantile([[value] for value in apart])


LABELS: Mapping[str, str] = {"trn1": "trn1", "a100": "p4d (A100)", "h100": "p5 (H100)"}
"""The name that users see, for each key of `fitted.json`."""


def calibration(key: str, fitted: Mapping[str, Any]) -> Calibration:
    """Create it from an entry of `fitted.json`. Rows that are newer than the last fit are left out."""
    errors = {config: LeftOutErrors(*values) for config, values in fitted["errors"].items()}
    rows = tuple(row for row in rows_of(key) if row.config in errors)
    return Calibration(
        key=key,
        label=LABELS[key],
        constants=Constants(**fitted["constants"]),
        rows=rows,
        errors=tuple(errors[row.config].alone for row in rows),
        family_errors=tuple(errors[row.config].family for row in rows),
        source_errors=tuple(errors[row.config].source for row in rows),
        elsewhere_errors={kind: tuple(each) for kind, each in fitted["as_stranger"].items()},
        by_software_errors=tuple(fitted["by_software"].values()),
        outside_check=fitted["outside_check"],
        traced_check=fitted["traced_check"],
        ranges=tuple(Range(*each) for each in fitted["ranges"]["counted"]),
        described_ranges=tuple(Range(*each) for each in fitted["ranges"]["described"]),
        script_ranges=tuple(Range(*each) for each in fitted["ranges"]["script"]),
        checked_at=fitted["checked_at"],
    )


CALIBRATIONS: dict[str, Calibration] = {
    key: calibration(key, entry) for key, entry in fitted()["calibrations"].items()
}
"""All calibrations, by the values of `InstanceType.calibration`."""


def calibration_of(instance: InstanceType) -> Calibration:
    """The calibration of an instance type.

    Raises:
        NotCalibrated: it has none; the message lists the instance types that have one.
    """
    if instance.calibration is None:
        raise NotCalibrated(f"{not_calibrated(instance)} {calibrated()}")
    return CALIBRATIONS[instance.calibration]


def calibrated() -> str:
    """A sentence that lists the instance types with a calibration."""
    return f"Calibrated are {', '.join(name for name, entry in CATALOG.items() if entry.calibration)}."


def not_calibrated(instance: InstanceType) -> str:
    """A sentence that says why an instance type has no calibration."""
    return (
        f"{instance.name} is not calibrated: the model was fitted to no published throughput of "
        f"{instance.accelerator.name}, so it gives neither times nor costs for it."
    )
