"""Which instance is the cheapest, how probable that is, and at which price it would turn.

The distribution. A cost has a middle and an 80 % interval, whose two sides differ. Its logarithm is
taken as two halves of normal distributions that meet in the middle: half of the probability lies on
each side, and a tenth beyond each end of the interval. Errors of different instances are taken as
independent. Those of one family share their constants, so between them the answer is surer than this
says; the same instances under two prices share all of it, and are told apart by the price alone. What a
script prepares before it trains takes the same on all of them: the probability is an average over that
time, not over one time an instance. An interval that also holds assumed fixed costs has all of its ends at
once, so it is rather wide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from statistics import NormalDist

from ..model.fixed_costs import FixedCost
from ..model.intervals import COVERAGE
from .comparison import Comparison
from .estimate import Cost, Estimate
from .verdict import ratio_width

CLEAR = 0.5 + COVERAGE / 2
"""From this probability on an answer is called clear: of two costs, the interval of their ratio then
leaves out equality."""
_POINTS = 200  # quantiles of each cost; the error of a probability is below half a percent
_NORMAL = NormalDist()
_END = _NORMAL.inv_cdf(CLEAR)
_SHARED = ((1 / 6, -math.sqrt(3)), (2 / 3, 0.0), (1 / 6, math.sqrt(3)))
"""Weights and places of a normal's three-point quadrature (Gauss-Hermite)."""


@dataclass(frozen=True)
class BreakEven:
    """The price of an hour at which one instance costs as much as another; US dollars, with interval.

    ``against``: the other's position among the estimates.
    """

    usd_per_hour: float
    low_usd_per_hour: float
    high_usd_per_hour: float
    against: int


@dataclass(frozen=True)
class Decision:
    """One day's prices, decided. All tuples follow the order of the estimates.

    ``costs``: None without a price. The others are None also where the job does not fit the memory.
    ``cheapest``: position of the lowest middle; None where nothing competes.
    ``probabilities``: of each to be the cheapest of those that compete.
    ``break_evens``: of each against the cheapest, of the cheapest against the next.
    ``inside``: all that compete lie in the calibrated range. Outside it an interval is a guess.
    """

    on: date
    costs: tuple[Cost | None, ...]
    cheapest: int | None
    probabilities: tuple[float | None, ...]
    break_evens: tuple[BreakEven | None, ...]
    inside: bool = True

    @property
    def probability(self) -> float | None:
        """That the cheapest is it."""
        return None if self.cheapest is None else self.probabilities[self.cheapest]

    @property
    def clear(self) -> bool:
        """Whether that is at least `CLEAR`, from intervals that hold, and there was something to choose from."""
        several = sum(chance is not None for chance in self.probabilities) > 1
        return several and self.inside and (self.probability or 0.0) >= CLEAR


def decisions(comparison: Comparison) -> tuple[Decision, ...]:
    """One for each day of the comparison, oldest first."""
    return tuple(decide(on, comparison.estimates, costs) for on, costs in comparison.costs)


def decide(on: date, estimates: Sequence[Estimate], costs: Sequence[Cost | None]) -> Decision:
    """The cheapest of these costs, one an estimate."""
    cheapest, chances = most_likely(estimates, costs)
    order = _competing(estimates, costs)
    evens: list[BreakEven | None] = [None] * len(costs)
    for index in order if len(order) > 1 else ():
        against = order[1] if index == cheapest else order[0]
        evens[index] = _break_even(costs, estimates, index, against)
    inside = all(estimates[index].range_check.inside for index in order)
    return Decision(on, tuple(costs), cheapest, chances, tuple(evens), inside)


def most_likely(
    estimates: Sequence[Estimate], costs: Sequence[Cost | None]
) -> tuple[int | None, tuple[float | None, ...]]:
    """Position of the lowest middle (None: nothing competes), and the probability of each to be the lowest.

    What does not fit the memory cannot run, so it does not compete. The same instances under two prices
    share all of their error: the cheaper price wins for certain, and of equal prices each is as likely.
    """
    order = _competing(estimates, costs)
    if not order:
        return None, (None,) * len(costs)
    rivals: dict[tuple[str, int], int] = {}
    for index in order:
        rivals.setdefault(_machines(estimates[index]), index)
    first = list(rivals.values())
    chances = _chances([(estimates[index], cost) for index in first if (cost := costs[index]) is not None])
    by_index = dict.fromkeys(order, 0.0)
    for index, chance in zip(first, chances, strict=True):
        same = [other for other in order if _same(estimates, costs, index, other)]
        by_index.update(dict.fromkeys(same, chance / len(same)))
    return order[0], tuple(by_index.get(index) for index in range(len(costs)))


def _chances(rivals: Sequence[tuple[Estimate, Cost]]) -> tuple[float, ...]:
    """`cheapest_probabilities`, on average over the time that preparation takes on all alike."""
    if not all(item.preparation.high_s > item.preparation.low_s for item, _ in rivals):
        return cheapest_probabilities([cost for _, cost in rivals])
    total = [0.0] * len(rivals)
    for weight, z in _SHARED:
        costs = [
            item.taking("preparation", _seconds(item.preparation, z)).cost(cost.price)
            for item, cost in rivals
        ]
        for index, chance in enumerate(cheapest_probabilities(costs)):
            total[index] += weight * chance
    return tuple(total)


def _seconds(item: FixedCost, z: float) -> float:
    """So many standard deviations from the middle, in the logarithm."""
    end = item.high_s if z > 0 else item.low_s
    return item.seconds * (end / item.seconds) ** (abs(z) / _END) if item.seconds and end else item.seconds


def cheapest_probabilities(costs: Sequence[Cost]) -> tuple[float, ...]:
    """The probability of each cost to be the lowest; together 1. Integrated over quantiles, no chance in it."""
    spreads = [_Spread.of(cost) for cost in costs]
    if len(spreads) == 2:
        first = math.fsum(spreads[1].above(spreads[0].quantile(z)) for z in _quantiles()) / _POINTS
        return first, 1 - first
    raw = []
    for own in spreads:
        others = [other for other in spreads if other is not own]
        points = (own.quantile(z) for z in _quantiles())
        raw.append(math.fsum(math.prod(other.above(point) for other in others) for point in points))
    whole = math.fsum(raw)
    return tuple(value / whole for value in raw)


@dataclass(frozen=True, eq=False)
class _Spread:
    """The logarithm of a cost: middle, and one standard deviation below and above."""

    middle: float
    below: float
    above_: float

    @classmethod
    def of(cls, cost: Cost) -> _Spread:
        middle = math.log(max(cost.usd, 1e-12))
        below = middle - math.log(max(min(cost.low_usd, cost.usd), 1e-12))
        above = math.log(max(cost.high_usd, 1e-12)) - middle
        return cls(middle, below / _END, max(above, 0.0) / _END)

    def quantile(self, z: float) -> float:
        """The point that a standard normal's ``z`` becomes."""
        return self.middle + z * (self.above_ if z > 0 else self.below)

    def above(self, point: float) -> float:
        """Probability to lie above a point; on a point without width, a half."""
        distance = point - self.middle
        width = self.above_ if distance > 0 else self.below
        if width <= 0:
            return 0.5 if distance == 0 else float(distance < 0)
        return 0.5 * math.erfc(distance / width / math.sqrt(2))


@cache
def _quantiles() -> tuple[float, ...]:
    return tuple(_NORMAL.inv_cdf((index + 0.5) / _POINTS) for index in range(_POINTS))


def _competing(estimates: Sequence[Estimate], costs: Sequence[Cost | None]) -> list[int]:
    """Positions of those that have a price and can run, the lowest cost first."""
    found = [
        (cost.usd, index)
        for index, (item, cost) in enumerate(zip(estimates, costs, strict=True))
        if cost is not None and item.fits
    ]
    return [index for _, index in sorted(found)]


def _same(estimates: Sequence[Estimate], costs: Sequence[Cost | None], one: int, other: int) -> bool:
    """Whether two are the same instances at the same cost."""
    first, second = costs[one], costs[other]
    alike = _machines(estimates[one]) == _machines(estimates[other])
    return alike and first is not None and second is not None and first.usd == second.usd


def _machines(item: Estimate) -> tuple[str, int]:
    return item.instance.name, item.instance_count


def _break_even(
    costs: Sequence[Cost | None], estimates: Sequence[Estimate], index: int, against: int
) -> BreakEven | None:
    own, other, estimate = costs[index], costs[against], estimates[index]
    if own is None or other is None or not estimate.billable_s:
        return None
    hours = estimate.billable_s * estimate.instance_count / 3600
    price = other.usd / hours
    if _machines(estimate) == _machines(estimates[against]):
        return BreakEven(price, price, price, against)
    down, up = ratio_width((estimates[against], other), (estimate, own))
    return BreakEven(price, price * math.exp(-down), price * math.exp(up), against)
