"""The answer for machines: what the first screen says, and a member an instance."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from windtunnel.priceperf import Comparison, Cost, Estimate
from windtunnel.reports.modelled.answer import Screen
from windtunnel.reports.modelled.batch_and_prices import each
from windtunnel.reports.modelled.data import rounded

_WORDS = ("job", "verdict", "compiling", "batch", "prices", "change", "largest", "trust", "left_out")


def answer_data(shown: Screen, comparison: Comparison) -> dict[str, Any]:
    """As JSON has it: see `_instance` for each of those compared, in the order of the screen."""
    found, estimates = shown.answer, comparison.estimates
    winner = None if found is None or found.winner is None else estimates[found.winner]
    leaning = None if found is None or found.leaning is None else estimates[found.leaning]
    nothing = (None,) * len(estimates)
    chances = nothing if found is None or found.obstacle else found.decided.probabilities
    decided = nothing if found is None else found.decided.costs
    return {
        **{name: value for name, value in asdict(shown).items() if name in _WORDS},
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
    """``samples_each``: on each worker, or each copy of a model that workers share. ``decided_usd``: what winner and
    probabilities go by, which leaves compile time out where it would decide. ``fits``: None where it is not known.
    What does not fit costs nothing, and has no dollars: a limit on them must not pass it.
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
        "usd": cost and rounded(cost.usd),
        "interval_usd": cost and [rounded(cost.low_usd), rounded(cost.high_usd)],
        "decided_usd": decided and rounded(decided.usd),
        "precision": item.precision.name,
        "fits": None if item.memory is None else item.fits,
        "probability_cheapest": chance,
    }
