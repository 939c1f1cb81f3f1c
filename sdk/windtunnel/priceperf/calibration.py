"""The fitted constants, the rows they come from, and how wrong they are.

Two families, one form of model: compute + memory + exposed collectives + host.
trn1 has three fitted constants (the parts of peak compute, memory bandwidth
and link bandwidth that are reached), the A100 two; its link is an assumption,
because no published row depends on it. `fitting.fit` reproduces the constants
from the rows, and `fitting.leave_one_out` the errors; tests hold both together.

The errors flatter the model a little. Its form (a sum, not a maximum), the weak
prior of the fit and the choice of A100 rows were made after seeing errors on
these same rows: with a maximum instead, trn1's leave-one-out mean was 44 %
(without prior; 28 % for the sum), and all 40 A100 rows gave 11 % where the 15
chosen gave 8 %. Both with an earlier count of bytes. `left_out_errors` shows
how the constants do on the rows that were not chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import mean, median

from .analytic import step_work
from .catalog import Family
from .fitting import P4D_LINK_EFFICIENCY, P4D_OVERLAP, TRN1_OVERLAP, relative_error
from .published_rows import A100_ROWS, TRN1_ROWS, PublishedRow
from .step import Efficiency

VERSION_SPREAD = 0.07
"""The same configuration moves by this much between Neuron versions: no model can be nearer."""

COVERAGE = 0.80
"""The part of left-out rows that lies inside an interval."""

WIDENING_PER_DOUBLING = 0.5
"""Outside the range, each factor of two adds half of the error again. Assumption."""

TRN1_ROWS_USED = tuple(row for row in TRN1_ROWS if row.tensor_parallel == 1)
A100_ROWS_USED = tuple(row for row in A100_ROWS if row.parameters < 1e9 and row.sequence_length <= 2048)

_LEFT_OUT: Mapping[Family, str] = {
    "trn1": "rows with tensor or pipeline parallelism: not covered by this model",
    "a100": "rows of 1e9 parameters or more, or sequences above 2,048: no rehearsal is that large",
}


@dataclass(frozen=True)
class Range:
    """Smallest and largest value of one quantity among the rows."""

    quantity: str
    unit: str
    low: float
    high: float

    def distance(self, value: float) -> float:
        """How many times ``value`` lies outside: 1 inside, 2 at half the low or twice the high end."""
        if value <= 0:
            return math.inf
        return max(1.0, self.low / value, value / self.high)


@dataclass(frozen=True)
class Calibration:
    """One family's constants with their honest error (relative, of the step time)."""

    family: Family
    efficiency: Efficiency
    rows: tuple[PublishedRow, ...]
    left_out: str
    errors: tuple[float, ...]
    """Leave-one-out: each row predicted by constants fitted to the others."""
    outside_check: float
    """Published / modelled step time of the one published job that is a plain script, not a tuned
    benchmark (`published`: AWS's BERT base classification). It took no part in the fit."""

    @property
    def left_out_errors(self) -> tuple[float, ...]:
        """Relative errors of the published rows outside the fit that the model can count at all."""
        published = TRN1_ROWS if self.family == "trn1" else A100_ROWS
        return tuple(
            relative_error(row, self.efficiency)
            for row in published
            if row not in self.rows and row.tensor_parallel == 1
        )

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
    def log_fast(self) -> float:
        """How much faster than modelled a step may be, in logs: 0.2 is down to 1/1.22 of the time.

        The conformal quantile of the leave-one-out errors at `COVERAGE`, at least the version spread.
        """
        ordered = sorted(abs(math.log1p(error)) for error in self.errors)
        rank = min(len(ordered), math.ceil((len(ordered) + 1) * COVERAGE))
        return max(ordered[rank - 1], math.log1p(VERSION_SPREAD))

    @property
    def log_slow(self) -> float:
        """How much slower: the same, and never less than the plain script was."""
        return max(self.log_fast, math.log(self.outside_check))

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Where the rows lie: parameters, sequence length, FLOPs a step and core."""
        return _ranges(self.rows)


@dataclass(frozen=True)
class RangeCheck:
    """Whether a job lies where the constants were fitted.

    ``outside``: sentences, one a quantity; ``unknown``: quantities that the counters do not tell.
    ``log_fast``, ``log_slow``: the calibration's, widened by the distance outside.
    """

    outside: tuple[str, ...]
    unknown: tuple[str, ...]
    log_fast: float
    log_slow: float

    @property
    def inside(self) -> bool:
        """No known quantity is outside."""
        return not self.outside


def check_range(calibration: Calibration, values: Mapping[str, float | None]) -> RangeCheck:
    """Compare a job's quantities with the calibrated range and widen the error outside it.

    ``values`` are keyed as `Range.quantity`; None or absent means not known.
    """
    outside, unknown, farthest = [], [], 1.0
    for limits in calibration.ranges:
        value = values.get(limits.quantity)
        if value is None:
            unknown.append(limits.quantity)
            continue
        distance = limits.distance(value)
        if distance > 1:
            farthest = max(farthest, distance)
            outside.append(
                f"{limits.quantity} {_short(value, limits.unit)}, calibrated from "
                f"{_short(limits.low, limits.unit)} to {_short(limits.high, limits.unit)}"
            )
    widened = 1 + WIDENING_PER_DOUBLING * math.log2(min(farthest, 2.0**20))
    return RangeCheck(
        tuple(outside), tuple(unknown), calibration.log_fast * widened, calibration.log_slow * widened
    )


@cache
def _ranges(rows: Sequence[PublishedRow]) -> tuple[Range, ...]:
    flops = [sum(step_work(row).flops.values()) for row in rows]
    parameters = [row.parameters for row in rows]
    lengths = [float(row.sequence_length) for row in rows]
    return (
        Range("model size", "parameters", min(parameters), max(parameters)),
        Range("sequence length", "tokens", min(lengths), max(lengths)),
        Range("work of a step", "FLOP a core", min(flops), max(flops)),
    )


def _short(value: float, unit: str) -> str:
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= limit:
            return f"{value / limit:.3g} {prefix}{'' if unit.startswith('FLOP') else ' '}{unit}"
    return f"{value:,.0f} {unit}"


CALIBRATIONS: Mapping[Family, Calibration] = {
    "trn1": Calibration(
        "trn1",
        Efficiency(compute=0.6494, memory=0.3315, link=0.1618, overlap=TRN1_OVERLAP),
        TRN1_ROWS_USED,
        _LEFT_OUT["trn1"],
        (0.2103, 0.2119, 0.0899, -0.0013, -0.1254, 0.2689, -0.1824, -0.0367, -0.1494, -0.226),
        1.486,
    ),
    "a100": Calibration(
        "a100",
        Efficiency(compute=0.8453, memory=0.2757, link=P4D_LINK_EFFICIENCY, overlap=P4D_OVERLAP),
        A100_ROWS_USED,
        _LEFT_OUT["a100"],
        (
            0.0178, -0.0795, -0.0443, -0.1898, -0.1976, -0.0495, 0.0383, 0.0967, 0.1173, 0.0838, 0.1416,
            0.174, 0.0146, 0.0416, 0.0691,
        ),
        1.051,
    ),
}  # fmt: skip
