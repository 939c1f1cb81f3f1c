"""The verdict of one instance against another at one day's prices: the saving, with an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from typing import Literal

from ..calibration.cluster_sizes import own_part
from .estimate import Cost, Estimate


@dataclass(frozen=True)
class Verdict:
    """A challenger against a baseline at one day's prices. ``saving`` 0.4: 40 % cheaper; negative: dearer."""

    on: date
    challenger: Estimate
    baseline: Estimate
    challenger_cost: Cost
    baseline_cost: Cost

    @property
    def saving(self) -> float:
        """1 - challenger / baseline."""
        return 1 - self.challenger_cost.usd / self.baseline_cost.usd

    @property
    def saving_interval(self) -> tuple[float, float]:
        """Low and high end of `saving`; see `ratio_width`."""
        ratio = self.challenger_cost.usd / self.baseline_cost.usd
        down, up = ratio_width((self.challenger, self.challenger_cost), (self.baseline, self.baseline_cost))
        return 1 - ratio * math.exp(up), 1 - ratio / math.exp(down)

    @property
    def winner(self) -> str | None:
        """The cheaper instance type; None if that cannot be said, see `obstacle`."""
        return None if self.obstacle else self._cheaper

    @property
    def obstacle(self) -> Literal["does not fit", "outside", "too small", "compiling", "open"] | None:
        """Why no instance can be named as the cheaper one; None: one can.

        ``does not fit``: on one of them the job needs more memory than there is. ``outside``: one estimate lies
        outside the calibrated range. ``too small``: on one of them assumed fixed costs take longer than the steps.
        ``compiling``: compile time would decide. ``open``: the interval of the saving includes 0.
        """
        pair = self.challenger, self.baseline
        if not all(item.fits for item in pair):
            return "does not fit"
        if not all(item.range_check.inside for item in pair):
            return "outside"
        if any(item.too_small for item in pair):
            return "too small"
        if self._cheaper != self._without_compile()._cheaper:
            return "compiling"
        return "open" if self._cheaper is None else None

    @property
    def _cheaper(self) -> str | None:
        low, high = self.saving_interval
        if low > 0:
            return self.challenger.instance.name
        return self.baseline.instance.name if high < 0 else None

    def _without_compile(self) -> Verdict:
        first, second = (item.taking("compile", 0.0) for item in (self.challenger, self.baseline))
        costs = first.cost(self.challenger_cost.price), second.cost(self.baseline_cost.price)
        return Verdict(self.on, first, second, *costs)


def ratio_width(one: tuple[Estimate, Cost], other: tuple[Estimate, Cost]) -> tuple[float, float]:
    """Log widths of the ratio of two costs (``one`` / ``other``), below and above its middle.

    The errors of the two costs are taken as independent, with two exceptions. Two numbers of the same instances share
    most of their error (`cluster_sizes`). The time of preparation is the same on both, so an error in it changes both
    costs together.
    """
    own = own_part() if one[0].instance.name == other[0].instance.name else 1.0
    if not all(item.preparation.high_s > item.preparation.low_s for item, _ in (one, other)):
        return _widths(one[1], other[1], own)

    def prepared(end: str) -> tuple[Cost, Cost]:
        first, second = (
            item.taking("preparation", getattr(item.preparation, end)).cost(cost.price)
            for item, cost in (one, other)
        )
        return first, second

    first, second = prepared("seconds")
    down, up = _widths(first, second, own)
    middle = math.log(first.usd / second.usd) if first.usd > 0 < second.usd else 0.0
    for end in ("low_s", "high_s"):
        first, second = prepared(end)
        moved = math.log(first.usd / second.usd) - middle if first.usd > 0 < second.usd else 0.0
        down, up = math.hypot(down, max(0.0, -moved)), math.hypot(up, max(0.0, moved))
    return down, up


def _widths(one: Cost, other: Cost, own: float) -> tuple[float, float]:
    """Log widths of ``one`` / ``other``, whose errors have the correlation 1 - ``own`` squared."""
    return _distance(_down(one), _up(other), own), _distance(_up(one), _down(other), own)


def _distance(one: float, other: float, own: float) -> float:
    """The width of the difference of two quantities with these widths."""
    return math.sqrt((one - other) ** 2 + 2 * own**2 * one * other)


def _up(cost: Cost) -> float:
    return math.log(cost.high_usd / cost.usd) if cost.usd > 0 else 0.0


def _down(cost: Cost) -> float:
    return math.log(cost.usd / cost.low_usd) if cost.low_usd > 0 else 0.0
