"""Which instance is the cheapest, with which probability, and at which price another one would be.

The distribution: a cost has a middle and an 80 % interval with unequal sides. Its logarithm is
modelled as two halves of normal distributions that meet in the middle: half of the probability lies on
each side, and a tenth beyond each end of the interval.

Errors of different instance types are taken as independent. Types with the same chip share their constants, so the real
answer between them is surer than this says. Different numbers of one type share most of their error (`cluster_sizes`
measures how much). The same instances at two prices share all of it, so the price alone decides. The time of
preparation (what a script does before it trains) is the same on all instances, so the probability is an
average over one common time. An interval with assumed fixed costs adds up the low ends and the high ends of
all its parts, so it is rather wide.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import product
from statistics import NormalDist

from ..calibration.cluster_sizes import own_part
from ..model.fixed_costs import FixedCost
from ..model.intervals import COVERAGE
from .comparison import Comparison
from .estimate import Cost, Estimate
from .prices import Price
from .verdict import ratio_width

CLEAR = 0.5 + COVERAGE / 2
"""From this probability on an answer is called clear: the interval of the ratio of two costs then
excludes 1."""
_POINTS = 200  # quantiles of each cost; the error of a probability is below half a percent
_NORMAL = NormalDist()
_END = _NORMAL.inv_cdf(CLEAR)
_SHARED = ((1 / 6, -math.sqrt(3)), (2 / 3, 0.0), (1 / 6, math.sqrt(3)))
"""Weights and points of the three-point Gauss-Hermite quadrature for a normal distribution."""
_SHARED_POINTS = 40  # quantiles of errors that several costs share, of all types together
_LEAST_POINTS = 10  # quantiles of each cost then


@dataclass(frozen=True)
class BreakEven:
    """The price of an hour at which one instance would cost as much as another; US dollars, with interval.

    ``against``: position of the other instance among the estimates.
    """

    usd_per_hour: float
    low_usd_per_hour: float
    high_usd_per_hour: float
    against: int


@dataclass(frozen=True)
class Decision:
    """The decision at one day's prices. All tuples follow the order of the estimates.

    An instance competes if it has a price and the job fits its memory; others have None in the tuples.
    ``costs``: None only if there is no price. ``cheapest``: position of the lowest middle; None if none competes.
    ``probabilities``: of each instance to be the cheapest of those that compete.
    ``break_evens``: of each instance against the cheapest, and of the cheapest against the next with another price;
    None between numbers of one type, which pay the same hour.
    ``inside``: whether all that compete lie in the calibrated range. Outside of it an interval is a guess.
    """

    on: date
    costs: tuple[Cost | None, ...]
    cheapest: int | None
    probabilities: tuple[float | None, ...]
    break_evens: tuple[BreakEven | None, ...]
    inside: bool = True

    @property
    def probability(self) -> float | None:
        """The probability that `cheapest` really is the cheapest."""
        return None if self.cheapest is None else self.probabilities[self.cheapest]

    @property
    def clear(self) -> bool:
        """Whether `probability` is at least `CLEAR`, several instances compete, and all lie in the calibrated range."""
        several = sum(chance is not None for chance in self.probabilities) > 1
        return several and self.inside and (self.probability or 0.0) >= CLEAR


def decisions(comparison: Comparison) -> tuple[Decision, ...]:
    """One decision for each day of the comparison, oldest first."""
    return tuple(decide(on, comparison.estimates, costs) for on, costs in comparison.costs)


def decide(on: date, estimates: Sequence[Estimate], costs: Sequence[Cost | None]) -> Decision:
    """Decide at one day's prices. ``costs``: one for each estimate."""
    cheapest, chances = most_likely(estimates, costs)
    order = _competing(estimates, costs)
    evens: list[BreakEven | None] = [None] * len(costs)
    for index in order:
        # A price that both pay turns nothing.
        others = [
            other for other in order if other != index and _price_of(costs, other) != _price_of(costs, index)
        ]
        against = others[0] if index == cheapest and others else order[0]
        if against in others:
            evens[index] = _break_even(costs, estimates, index, against)
    inside = all(estimates[index].range_check.inside for index in order)
    return Decision(on, tuple(costs), cheapest, chances, tuple(evens), inside)


def most_likely(
    estimates: Sequence[Estimate], costs: Sequence[Cost | None]
) -> tuple[int | None, tuple[float | None, ...]]:
    """Position of the lowest middle (None: none competes), and each one's probability to be the lowest.

    Only instances with a price whose memory the job fits compete. The same instances at two prices
    share all of their error: the lower price wins for certain; equal prices share the probability.
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
    """`cheapest_probabilities`, averaged over the time of preparation, which is the same on all instances."""
    types = [item.instance.name for item, _ in rivals]
    if not all(item.preparation.high_s > item.preparation.low_s for item, _ in rivals):
        return cheapest_probabilities([cost for _, cost in rivals], types)
    total = [0.0] * len(rivals)
    for weight, z in _SHARED:
        costs = [
            item.taking("preparation", _seconds(item.preparation, z)).cost(cost.price)
            for item, cost in rivals
        ]
        for index, chance in enumerate(cheapest_probabilities(costs, types)):
            total[index] += weight * chance
    return tuple(min(1.0, chance) for chance in total)


def _seconds(item: FixedCost, z: float) -> float:
    """The seconds at ``z`` standard deviations from the middle, in logs."""
    end = item.high_s if z > 0 else item.low_s
    return item.seconds * (end / item.seconds) ** (abs(z) / _END) if item.seconds and end else item.seconds


def cheapest_probabilities(costs: Sequence[Cost], types: Sequence[str] = ()) -> tuple[float, ...]:
    """The probability of each cost to be the lowest; they add up to 1. Integrated over quantiles, so deterministic.

    ``types``: the instance type of each cost. Costs of one type share most of their error; without types none do.
    """
    spreads = [_Spread.of(cost) for cost in costs]
    several = [name for name, count in Counter(types).items() if count > 1]
    if not several:
        return _lowest(spreads, _POINTS)
    total = [0.0] * len(costs)
    of_each = max(3, round(_SHARED_POINTS ** (1 / len(several))))
    shared = [*product(_quantiles(of_each), repeat=len(several))]
    for errors in shared:
        by_type = dict(zip(several, errors, strict=True))
        known = [
            spread.if_shared(by_type[name]) if name in by_type else spread
            for spread, name in zip(spreads, types, strict=True)
        ]
        for index, chance in enumerate(_lowest(known, max(_LEAST_POINTS, _POINTS // len(shared)))):
            total[index] += chance / len(shared)
    return tuple(min(1.0, chance) for chance in total)


def _lowest(spreads: Sequence[_Spread], points: int) -> tuple[float, ...]:
    """The probability of each distribution to be the lowest; their errors are independent."""
    if len(spreads) == 2:
        first = math.fsum(spreads[1].above(spreads[0].quantile(z)) for z in _quantiles(points)) / points
        return first, 1 - first
    raw = []
    for own in spreads:
        others = [other for other in spreads if other is not own]
        places = (own.quantile(z) for z in _quantiles(points))
        raw.append(math.fsum(math.prod(other.above(place) for other in others) for place in places))
    whole = math.fsum(raw)
    return tuple(value / whole for value in raw)


@dataclass(frozen=True, eq=False)
class _Spread:
    """The distribution of a cost's logarithm: its middle, and the standard deviations below and above.

    It is that of a standard normal variable, stretched on each side. ``shift`` and ``own`` are mean and standard
    deviation of this variable, once a part of the error is known.
    """

    middle: float
    lower_deviation: float
    upper_deviation: float
    shift: float = 0.0
    own: float = 1.0

    @classmethod
    def of(cls, cost: Cost) -> _Spread:
        middle = math.log(max(cost.usd, 1e-12))
        below = middle - math.log(max(min(cost.low_usd, cost.usd), 1e-12))
        above = math.log(max(cost.high_usd, 1e-12)) - middle
        return cls(middle, below / _END, max(above, 0.0) / _END)

    def if_shared(self, error: float) -> _Spread:
        """The distribution if the error that it shares with others is known; ``error``: in standard deviations."""
        own = own_part()
        return replace(self, shift=error * math.sqrt(1 - own**2), own=own)

    def quantile(self, z: float) -> float:
        """The point of this distribution that corresponds to ``z`` of a standard normal one."""
        z = self.shift + self.own * z
        return self.middle + z * (self.upper_deviation if z > 0 else self.lower_deviation)

    def above(self, point: float) -> float:
        """The probability to lie above a point; a half if there is no width and the point is the middle."""
        distance = point - self.middle
        width = self.upper_deviation if distance > 0 else self.lower_deviation
        if width <= 0:
            return 0.5 if distance == 0 else float(distance < 0)
        return 0.5 * math.erfc((distance / width - self.shift) / self.own / math.sqrt(2))


@cache
def _quantiles(points: int) -> tuple[float, ...]:
    """Points of the standard normal distribution that divide it into equal parts, each in the middle of its part."""
    return tuple(_NORMAL.inv_cdf((index + 0.5) / points) for index in range(points))


def _competing(estimates: Sequence[Estimate], costs: Sequence[Cost | None]) -> list[int]:
    """Positions of the estimates that have a price and fit the memory, lowest cost first."""
    found = [
        (cost.usd, index)
        for index, (item, cost) in enumerate(zip(estimates, costs, strict=True))
        if cost is not None and item.fits
    ]
    return [index for _, index in sorted(found)]


def _price_of(costs: Sequence[Cost | None], index: int) -> Price | None:
    cost = costs[index]
    return None if cost is None else cost.price


def _same(estimates: Sequence[Estimate], costs: Sequence[Cost | None], one: int, other: int) -> bool:
    """Whether two estimates are of the same instances at the same cost."""
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
