"""Whether a cheapest instance can be named, and if not, why.

Compile time is modelled from few published figures, and there is none once a cache has the graphs. So it never
decides: if it would change the answer or its probability, the answer is taken from the costs without it.
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

Obstacle = Literal["no price", "does not fit", "one instance", "assumed", "outside", "size", "host"]
"""Why no cheapest instance can be named.

``no price``, ``does not fit``: no instance has a price and fits the job. ``one instance``: only one does.
``assumed``: on one that competes, assumed fixed costs take longer than the modelled steps.
``outside``: one that competes lies outside the calibrated range.
``size``: the size of the whole job is not known (`Comparison.size_known`).
``host``: the host's part of a step is not known (`Comparison.host_known`).
"""


@dataclass(frozen=True)
class Answer:
    """Which instance is the cheapest at one day's prices. Positions are those of the estimates.

    Attributes:
        whole: the decision from the whole bill, with compile time.
        decided: the decision that counts: ``whole``, or that without compile time if compile time changes it, be it a
            probability alone.
        obstacle: why no cheapest can be named; None: one can.
        hindered: positions of the estimates that cause the obstacle.
    """

    whole: Decision
    decided: Decision
    obstacle: Obstacle | None
    hindered: tuple[int, ...]

    @property
    def winner(self) -> int | None:
        """Position of the cheapest, even if its probability is low; None if there is an obstacle."""
        return None if self.obstacle else self.decided.cheapest

    @property
    def leaning(self) -> int | None:
        """If the obstacle is ``outside``, position of the cheapest by the widened intervals. It is no answer."""
        return self.decided.cheapest if self.obstacle == "outside" else None

    @property
    def probability(self) -> float | None:
        """The probability that `winner` really is the cheapest; None without one."""
        return None if self.winner is None else self.decided.probability

    @property
    def clear(self) -> bool:
        """Whether there is a winner with a probability of at least `decision.CLEAR`."""
        return self.winner is not None and self.decided.clear

    @property
    def without_compile(self) -> bool:
        """Whether compile time was left out because it would have changed the decision."""
        return self.decided is not self.whole

    @property
    def turned(self) -> bool:
        """Whether compile time would have changed which instance is named, or whether it is `clear`."""
        return (self.whole.cheapest, self.whole.clear) != (self.decided.cheapest, self.decided.clear)


def answers(comparison: Comparison) -> tuple[Answer, ...]:
    """One answer for each day of the comparison, oldest first; empty if no instance has a price."""
    found = (answer(on, comparison.estimates, costs) for on, costs in comparison.costs)
    if not comparison.size_known:
        return tuple(replace(each, obstacle="size", hindered=()) for each in found)
    if comparison.host_known:
        return tuple(found)
    graver = ("no price", "does not fit")
    return tuple(
        each if each.obstacle in graver else replace(each, obstacle="host", hindered=()) for each in found
    )


def by_offering(estimates: Sequence[Estimate], book: PriceBook) -> tuple[tuple[Offering, Answer], ...]:
    """The answer for each offering with list prices of two or more of the instances.

    It uses the newest prices, or those of the book's day, because offerings change prices on different days.
    """
    found = []
    for offering in LISTED:
        costs = [cost_on(item, book, None, offering) for item in estimates]
        days = [cost.price.effective_from for cost in costs if cost is not None]
        if len(days) > 1:
            found.append((offering, answer(book.as_of or max(days), estimates, costs)))
    return tuple(found)


def answer(on: date, estimates: Sequence[Estimate], costs: Sequence[Cost | None]) -> Answer:
    """Which instance is the cheapest. ``costs``: one for each estimate."""
    whole = decide(on, estimates, costs)
    bare = [item.taking("compile", 0.0) for item in estimates]
    left = [None if cost is None else item.cost(cost.price) for item, cost in zip(bare, costs, strict=True)]
    without = decide(on, bare, left)
    obstacle, hindered = _obstacle(estimates, whole)
    return Answer(whole, whole if _said(without) == _said(whole) else without, obstacle, hindered)


def _said(decision: Decision) -> tuple[object, ...]:
    """What a reader learns of a decision: probabilities in whole percent."""
    chances = [None if chance is None else round(chance, 2) for chance in decision.probabilities]
    return decision.cheapest, decision.clear, chances


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
