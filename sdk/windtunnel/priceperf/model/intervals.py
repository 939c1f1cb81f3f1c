"""Prediction intervals from the errors of left-out rows, wider for jobs outside the calibrated range.

The intervals are conformal: the width is a quantile of left-out errors, so that at least `COVERAGE` of
similar rows lie inside. `calibration.left_out` has the errors. Widths are in
logs: 0.2 is a factor of 1.22 to either side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

COVERAGE = 0.80
"""The part of left-out rows that shall lie inside an interval."""

WIDENING_PER_DOUBLING = 0.5
"""Outside the range, each factor of two widens the interval by this part of its width. Assumption."""


_SAME = 1.02
"""A value outside a range by up to this factor counts as inside: two rehearsals of a job differ a little in their
counts, and an architecture's parameters leave out biases and norms, up to 1.6 %."""


def group_quantile(groups: Sequence[Sequence[float]]) -> float:
    """The conformal quantile (at `COVERAGE`) of scores, for a row of a new group.

    Each group has weight 1, divided among its scores; the new group counts as one more. If there are too few groups
    for `COVERAGE`, it is the largest score.
    """
    needed = COVERAGE * (len(groups) + 1) - 1e-9
    weight = found = 0.0
    for score, part in sorted((score, 1 / len(group)) for group in groups for score in group):
        weight, found = weight + part, score
        if weight >= needed:
            break
    return found


@dataclass(frozen=True)
class Range:
    """The smallest and the largest value of one quantity among the calibration's rows."""

    quantity: str
    unit: str
    low: float
    high: float

    def distance(self, value: float) -> float:
        """The factor by which ``value`` lies outside: 1 inside, 2 at half the low end or twice the high end."""
        if value <= 0:
            return math.inf
        return max(1.0, self.low / value, value / self.high)

    @cached_property
    def words(self) -> str:
        """The range as text: ``from 2 to 64 nodes``."""
        low, high = _short(self.low, self.unit), _short(self.high, self.unit)
        if self.low == self.high:
            return f"at {low} only"
        number, _, unit = low.partition(" ")
        return f"from {number if high.endswith(f' {unit}') else low} to {high}"

    @classmethod
    def of(cls, quantity: str, unit: str, values: Sequence[float]) -> Range:
        """The range of these values."""
        return cls(quantity, unit, min(values), max(values))


class RangeCheck(NamedTuple):
    """Whether a job lies in the range of the rows to which the constants were fitted, and its interval.

    ``outside``: a sentence for each quantity outside, the farthest first; ``unknown``: quantities whose value is not
    known. ``log_fast``, ``log_slow``: log widths of the interval, larger outside the range. ``by_known_software``: the
    interval is that of new models by software whose speed is known.
    """

    outside: tuple[str, ...]
    unknown: tuple[str, ...]
    log_fast: float
    log_slow: float
    by_known_software: bool = False

    @property
    def inside(self) -> bool:
        """Whether no known quantity is outside."""
        return not self.outside


def check_ranges(
    ranges: Sequence[Range], values: Mapping[str, float | None], log_fast: float, log_slow: float
) -> RangeCheck:
    """Compare quantities with the calibrated ranges, and widen the interval outside them.

    ``values``: by the names in `Range.quantity`; None or absent: not known.
    """
    outside: list[tuple[float, str]] = []
    unknown = []
    for limits in ranges:
        value = values.get(limits.quantity)
        if value is None:
            unknown.append(limits.quantity)
        elif not limits.low <= value <= limits.high and (distance := limits.distance(value)) > _SAME:
            sentence = f"{limits.quantity} {_short(value, limits.unit)}, calibrated {limits.words}"
            outside.append((distance, sentence))
    outside.sort(key=lambda each: -each[0])
    farthest = outside[0][0] if outside else 1.0
    widened = 1 + WIDENING_PER_DOUBLING * math.log2(min(farthest, 2.0**20))
    sentences = tuple(sentence for _, sentence in outside)
    return RangeCheck(sentences, tuple(unknown), log_fast * widened, log_slow * widened)


def _short(value: float, unit: str) -> str:
    near = float(f"{value:.3g}")
    for limit, prefix in ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if near >= limit:
            return f"{near / limit:.3g} {prefix}{'' if unit.startswith('FLOP') else ' '}{unit}"
    return f"{value:,.0f} {unit.removesuffix('s') if value == 1 else unit}"
