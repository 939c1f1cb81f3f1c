"""The answer as data for JSON: what the first screen says, and an object for each instance."""

from __future__ import annotations

from typing import Any

from windtunnel.priceperf import Comparison, Cost, Estimate
from windtunnel.reports.modelled.answer import Screen
from windtunnel.reports.modelled.batch_and_prices import each
from windtunnel.reports.modelled.data import amount, rounded

_WORDS = (
    "job",
    "missing",
    "verdict",
    "compiling",
    "batch",
    "prices",
    "change",
    "largest",
    "trust",
    "attention",
    "memory",
    "left_out",
)


def answer_data(shown: Screen, comparison: Comparison) -> dict[str, Any]:
    """The answer for JSON; ``instances`` has an object of `_instance` for each estimate, in the screen's order."""
    found, estimates = shown.answer, comparison.estimates
    winner = None if found is None or found.winner is None else estimates[found.winner]
    leaning = None if found is None or found.leaning is None else estimates[found.leaning]
    nothing = (None,) * len(estimates)
    chances = nothing if found is None or found.obstacle else found.decided.probabilities
    decided = nothing if found is None else found.decided.costs
    return {
        **{name: getattr(shown, name) for name in _WORDS},
        "prices_on": None if shown.on is None else shown.on.isoformat(),
        "winner": winner and winner.name,
        "winner_instance_count": winner and winner.instance_count,
        "probability": found and found.probability,
        "clear": found is not None and found.clear,
        "obstacle": "no price" if found is None else found.obstacle,
        "leaning": leaning
        and found
        and {
            "priced_as": leaning.name,
            "instance_count": leaning.instance_count,
            "probability": found.decided.probability,
        },
        "without_compile": found is not None and found.without_compile,
        "instances": [
            _instance(estimates[index], shown.costs[index], decided[index], chances[index])
            for index in shown.order
        ],
    }


def _instance(
    item: Estimate, cost: Cost | None, decided: Cost | None, chance: float | None
) -> dict[str, Any]:
    """One estimate of the answer.

    ``samples_each``: on each worker, or each copy of a model that workers share. ``decided_usd``: the cost by which
    winner and probabilities are decided, without compile time where that would decide. ``fits``: None where it is not
    known. An estimate that does not fit has no dollars, so that it never passes a limit on cost.
    """
    if not item.fits:
        cost = decided = None
    return {
        "priced_as": item.name,
        "instance_count": item.instance_count,
        "global_batch": item.global_batch,
        "samples_each": each(item),
        "samples_per_worker": item.samples_per_core,
        "billable_s": item.billable_s,
        "billable_interval_s": list(item.billable_interval_s),
        **amount(cost),
        "decided_usd": decided and rounded(decided.usd),
        "precision": item.precision.name,
        "fits": None if item.memory is None else item.fits,
        "probability_cheapest": chance,
    }
