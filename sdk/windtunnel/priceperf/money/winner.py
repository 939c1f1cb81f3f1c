"""Whether one can say which instance is cheapest, and if not, why.

Compile time is modelled from few published figures and falls away once a cache holds the graphs, so it never
decides: where it turns the answer, the answer is that of the costs without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

from .comparison import Comparison
from .decision import Decision, decide
from .estimate import Cost, Estimate, cost_on
from .offerings import LISTED, Offering
from .prices import PriceBook

Obstacle = Literal["no price", "does not fit", "one instance", "assumed", "outside", "size"]
"""Why there is no answer.

``no price``, ``does not fit``: none is left that has a price and runs. ``one instance``: only one is left.
``assumed``: on one of those that compete assumed fixed costs outweigh the modelled steps.
``outside``: one of them lies outside the calibrated range.
``size``: how large the job is could not be told (`Comparison.size_known`).
"""


@dataclass(frozen=True)
class Answer:
    """Who is cheapest at one day's prices. Positions are those of the estimates.

    Attributes:
        whole: from the bill as modelled, compile time included.
        decided: what the answer is taken from: ``whole``, or the costs without compile time where that turns it.
        obstacle: why there is no answer; None: there is one.
        hindered: the estimates that are the obstacle.
    """

    whole: Decision
    decided: Decision
    obstacle: Obstacle | None
    hindered: tuple[int, ...]

    @property
    def winner(self) -> int | None:
        """The cheapest, whatever its probability; None where nothing can be said."""
        return None if self.obstacle else self.decided.cheapest

    @property
    def leaning(self) -> int | None:
        """Outside the calibrated range: the cheapest by the widened intervals. No answer."""
        return self.decided.cheapest if self.obstacle == "outside" else None

    @property
    def probability(self) -> float | None:
        """That it is."""
        return None if self.winner is None else self.decided.probability

    @property
    def clear(self) -> bool:
        """Whether it is no longer too close to call."""
        return self.winner is not None and self.decided.clear

    @property
    def without_compile(self) -> bool:
        """Whether compile time would have turned it, and was left out."""
        return self.decided is not self.whole


def answers(comparison: Comparison) -> tuple[Answer, ...]:
    """One for each day of the comparison, oldest first; none where nothing has a price."""
    found = (answer(on, comparison.estimates, costs) for on, costs in comparison.costs)
    if comparison.size_known:
        return tuple(found)
    return tuple(replace(each, obstacle="size", hindered=()) for each in found)


def by_offering(estimates: Sequence[Estimate], book: PriceBook) -> tuple[tuple[Offering, Answer], ...]:
    """The answer at each offering that has list prices of at least two of the instances: its newest ones, or those of
    the book's day. They change on other days than those by which the instances are compared.
    """
    found = []
    for offering in LISTED:
        costs = [cost_on(item, book, None, offering) for item in estimates]
        days = [cost.price.effective_from for cost in costs if cost is not None]
        if len(days) > 1:
            found.append((offering, answer(book.as_of or max(days), estimates, costs)))
    return tuple(found)


def answer(on: date, estimates: Sequence[Estimate], costs: Sequence[Cost | None]) -> Answer:
    """Who is cheapest of these, one cost an estimate."""
    whole = decide(on, estimates, costs)
    bare = [item.taking("compile", 0.0) for item in estimates]
    left = [None if cost is None else item.cost(cost.price) for item, cost in zip(bare, costs, strict=True)]
    without = decide(on, bare, left)
    turned = (without.cheapest, without.clear) != (whole.cheapest, whole.clear)
    obstacle, hindered = _obstacle(estimates, whole)
    return Answer(whole, without if turned else whole, obstacle, hindered)


def _obstacle(estimates: Sequence[Estimate], decision: Decision) -> tuple[Obstacle | None, tuple[int, ...]]:
    everyone = tuple(range(len(estimates)))
    rivals = tuple(index for index in everyone if decision.probabilities[index] is not None)
    if not rivals:
        running = tuple(index for index in everyone if estimates[index].fits)
        return ("no price", running) if running else ("does not fit", everyone)
    outside = tuple(index for index in rivals if not estimates[index].range_check.inside)
    assumed = tuple(index for index in rivals if estimates[index].too_small)
    if len(rivals) == 1:
        return "one instance", rivals
    if assumed:
        return "assumed", assumed
    return ("outside", outside) if outside else (None, ())
