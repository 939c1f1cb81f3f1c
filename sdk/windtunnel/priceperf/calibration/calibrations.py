"""The fitted constants, the rows they come from, and how wrong they are.

One form of model (`described_step`, `engines`, `collectives`) serves all kinds of accelerators.
`fitting.PRIORS` says which constants are fitted, and from which rows each. `fitted.json` holds them and the
errors, as scripts/fit_calibrations.py wrote them; tests fit them again. All published rows are in; none is
left out.

The errors flatter the model a little. Its form (which collectives cost hops, that recomputing
rows are sequence-parallel, how much engines overlap) and its assumptions were chosen with
these rows in sight, by their left-out errors. The numbers do not depend on fine choices: each of
these alone (``overlap`` 0 to 0.8, ``network`` 0.3 to 0.9, ``straggling`` 0 to 2 %, the counts of
passes down or up by half, `HALF_SIZE` 64 or 192, all priors half or twice as wide) left trn1's
leave-one-out mean between 4.7 and 6.0 % (largest error 10 to 18 %) and its leave-one-family-out
mean between 4.5 and 7.6 %; the A100's leave-one-out mean between 2.8 and 3.4 %. Forms matter more:
hops counted for a hierarchy of rings, not for one ring through all members, missed the row of 512
workers that accumulates least by 50 %. Rows of new models are the fairer test; leave-one-family-out
is the nearest to it that these rows allow.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from statistics import mean, median
from typing import Any

from ..errors import NotCalibrated
from ..instances import CATALOG, InstanceType, instance_type
from ..model.counted_step import step_time
from ..model.described_as_counted import step_work
from ..model.engines import Constants
from ..model.intervals import Range, RangeCheck, check_ranges, half_width
from ..model.precision import AUTO_CAST, TF32
from .published_rows import rows_of
from .row_reader import PublishedRow

VERSION_SPREAD = 0.07
"""The same configuration moves by this much between Neuron versions: the floor of any model's error."""


@dataclass(frozen=True)
class Calibration:
    """The constants of one kind of accelerator with their honest errors (relative, of the throughput)."""

    key: str
    """What `InstanceType.calibration` names it by."""
    label: str
    """For people."""
    constants: Constants
    rows: tuple[PublishedRow, ...]
    errors: tuple[float, ...]
    """Leave-one-out: each row predicted by constants fitted to the others."""
    family_errors: tuple[float, ...]
    """Leave-one-family-out: each row predicted by constants fitted to the other families of models."""
    outside_check: float
    """Published / modelled step time of the one published job that is a plain script, not a tuned
    benchmark (`published.bert_jobs`: AWS's BERT base classification). It took no part in the fit."""
    traced_check: float
    """The same where the host's tracing of the step is known, from a rehearsal of that job."""

    @property
    def is_neuron(self) -> bool:
        """Whether it is of NeuronCores, whose scripts XLA traces on the host."""
        return instance_type(self.rows[0].instance_type).is_neuron

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
    def counts_rows(self) -> tuple[PublishedRow, ...]:
        """The rows that are as a rehearsal would be: data-parallel, nothing recomputed, eager attention."""
        return _counts_rows(self.rows)

    @property
    def counts_errors(self) -> tuple[float, ...]:
        """The errors of `counts_rows` predicted from what a rehearsal counts."""
        return _counts_errors(self.rows, self.constants)

    @property
    def log_fast(self) -> float:
        """How much faster than modelled from counts a step may be, in logs: 0.2 is down to 1/1.22 of the time.

        The conformal quantile of `counts_errors`, at least the version spread.
        """
        return max(half_width(self.counts_errors), math.log1p(VERSION_SPREAD))

    @property
    def log_slow(self) -> float:
        """How much slower: the same, and never less than the plain script was."""
        return self.log_slower(traced=False)

    def log_slower(self, *, traced: bool) -> float:
        """`log_slow`; less where a rehearsal has measured how long the host traces a step."""
        return max(self.log_fast, math.log(self.traced_check if traced else self.outside_check))

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Where the data-parallel rows lie: parameters, FLOPs a step and core.

        The sequence length is that of `counts_rows`: the work of eager attention grows with its square.
        """
        return _ranges(self.rows)


def check_range(
    calibration: Calibration, values: Mapping[str, float | None], *, traced: bool = False
) -> RangeCheck:
    """Compare a rehearsed job's quantities with the calibrated range and widen the error outside it.

    ``traced``: the rehearsal measured how long the host traces a step.
    """
    slow = calibration.log_slower(traced=traced)
    return check_ranges(calibration.ranges, values, calibration.log_fast, slow)


@cache
def _counts_rows(rows: tuple[PublishedRow, ...]) -> tuple[PublishedRow, ...]:
    return tuple(
        row
        for row in rows
        if row.training.workers == row.training.data_parallel
        and row.training.recompute == "none"
        and row.training.attention == "eager"
    )


@cache
def _counts_errors(rows: tuple[PublishedRow, ...], constants: Constants) -> tuple[float, ...]:
    errors = []
    for row in _counts_rows(rows):
        instance = instance_type(row.instance_type)
        precision = AUTO_CAST if instance.is_neuron else TF32
        time = step_time(step_work(row.training), instance, precision, constants, row.nodes)
        errors.append(row.step_s / row.training.microbatches / time.total_s - 1)
    return tuple(errors)


@cache
def _ranges(rows: tuple[PublishedRow, ...]) -> tuple[Range, ...]:
    alone = [row.training for row in rows if row.training.workers == row.training.data_parallel]
    eager = [float(row.training.sequence_length) for row in _counts_rows(rows)]
    return (
        Range.of("model size", "parameters", [training.parameters for training in alone]),
        Range.of("sequence length", "tokens", eager),
        Range.of(
            "work of a step", "FLOP a core", [sum(step_work(training).flops.values()) for training in alone]
        ),
    )


LABELS: Mapping[str, str] = {"trn1": "trn1", "a100": "p4d (A100)"}
"""For people, of each key of `fitted.json`."""


def calibration(key: str, fitted: Mapping[str, Any]) -> Calibration:
    """From an entry of `fitted.json`. A row that came later takes no part until the constants are fitted again."""
    errors = fitted["errors"]
    rows = tuple(row for row in rows_of(key) if row.config in errors)
    return Calibration(
        key,
        LABELS[key],
        Constants(**fitted["constants"]),
        rows,
        tuple(errors[row.config][0] for row in rows),
        tuple(errors[row.config][1] for row in rows),
        fitted["outside_check"],
        fitted["traced_check"],
    )


def fitted() -> dict[str, Any]:
    """What `scripts/fit_calibrations.py` has written into `fitted.json`."""
    found: dict[str, Any] = json.loads(files(__package__).joinpath("fitted.json").read_text(encoding="utf-8"))
    return found


CALIBRATIONS: dict[str, Calibration] = {
    key: calibration(key, entry) for key, entry in fitted()["calibrations"].items()
}
"""By what `InstanceType.calibration` names them."""


def calibration_of(instance: InstanceType) -> Calibration:
    """The calibration that models an instance type.

    Raises:
        NotCalibrated: there is none; the message says which instance types have one.
    """
    if instance.calibration is None:
        known = ", ".join(name for name, entry in CATALOG.items() if entry.calibration)
        raise NotCalibrated(f"{not_calibrated(instance)} Calibrated are {known}.")
    return CALIBRATIONS[instance.calibration]


def not_calibrated(instance: InstanceType) -> str:
    """Why there is no calibration of an instance type, as a sentence."""
    return (
        f"{instance.name} is not calibrated: the model was fitted to no published throughput of "
        f"{instance.accelerator.name}, so it gives neither times nor costs for it."
    )
