"""The modelled part as data for JSON: units in the names, price and date beside each cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from statistics import mean
from typing import Any

from windtunnel.priceperf import (
    Answer,
    BreakEven,
    Comparison,
    Cost,
    Estimate,
    FullScale,
    PerDevice,
    Verdict,
    answers,
)
from windtunnel.reports.prices import price_data


def modelled(comparison: Comparison, full_scale: FullScale | None) -> dict[str, Any]:
    """All that is modelled: estimates, their other precisions, which is cheapest, and the verdicts on pairs."""
    return {
        "full_scale": None if full_scale is None else asdict(full_scale),
        "batch_rule": str(rule) if isinstance(rule := comparison.batch_rule, PerDevice) else rule,
        "estimates": [
            _estimate(item, _costs_of(comparison, index)) for index, item in enumerate(comparison.estimates)
        ],
        "alternatives": [_estimate(item, ()) for item in comparison.alternatives],
        "decisions": [_decision(found, comparison.estimates) for found in answers(comparison)],
        "verdicts": [_verdict(item) for item in comparison.verdicts],
        "not_calibrated": [instance.name for instance in comparison.not_calibrated],
        "not_possible": {item.label: item.why for item in comparison.not_possible},
    }


def _costs_of(comparison: Comparison, index: int) -> list[dict[str, Any]]:
    return [
        {"on": on.isoformat(), **cost_data(cost)}
        for on, costs in comparison.costs
        if (cost := costs[index]) is not None
    ]


def _estimate(item: Estimate, costs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    calibration, check = item.calibration, item.range_check
    return {
        "instance_type": item.instance.name,
        "priced_as": item.name,
        "instance_count": item.instance_count,
        "workers": item.cores,
        "precision": {"name": item.precision.name, "meaning": item.precision.meaning},
        "global_batch": item.global_batch,
        "samples_per_worker": item.samples_per_core,
        "fits": None if item.memory is None else item.fits,
        "step": {
            "total_s": rounded(item.step.total_s),
            "interval_s": [rounded(end) for end in item.step_interval_s],
            "collective_s": rounded(item.step.collective_s),
            "exposed_collective_s": rounded(item.step.exposed_collective_s),
            **{key: rounded(value) for key, value in item.step._asdict().items()},
        },
        "samples_per_s": rounded(item.samples_per_s),
        "steps": item.steps,
        "train_s": rounded(item.train_s),
        "train_interval_s": [rounded(end) for end in item.train_interval_s],
        "fixed_costs": [
            {
                key: rounded(value) if isinstance(value, float) else value
                for key, value in cost._asdict().items()
            }
            for cost in item.fixed
        ],
        "billable_s": item.billable_s,
        "billable_interval_s": list(item.billable_interval_s),
        "costs": list(costs),
        "calibration": {
            "rows": len(calibration.rows),
            "leave_one_out_mean": rounded(calibration.mean_error),
            "leave_one_out_median": rounded(calibration.median_error),
            "leave_one_out_max": rounded(calibration.max_error),
            "unseen_software_mean": rounded(calibration.unseen_error(item.instance_count)),
            "from_counts_rows": len(calibration.counts_rows),
            "from_counts_mean": rounded(mean(map(abs, calibration.counts_errors))),
            "from_counts_max": rounded(max(map(abs, calibration.counts_errors))),
            "outside_check_ratio": calibration.outside_check,
            "outside_range": list(check.outside),
            "not_checked": list(check.unknown),
        },
    }


def cost_data(cost: Cost) -> dict[str, Any]:
    """A cost with its interval and price."""
    return {**amount(cost), "price": price_data(cost.price)}


def amount(cost: Cost | None) -> dict[str, Any]:
    """A cost with its interval; None where there is none."""
    if cost is None:
        return {"usd": None, "interval_usd": None}
    return {"usd": rounded(cost.usd), "interval_usd": [rounded(cost.low_usd), rounded(cost.high_usd)]}


def _verdict(item: Verdict) -> dict[str, Any]:
    return {
        "on": item.on.isoformat(),
        "challenger": item.challenger.instance.name,
        "challenger_priced_as": item.challenger.name,
        "challenger_instance_count": item.challenger.instance_count,
        "baseline": item.baseline.instance.name,
        "baseline_priced_as": item.baseline.name,
        "baseline_instance_count": item.baseline.instance_count,
        "baseline_precision": item.baseline.precision.name,
        "challenger_cost": cost_data(item.challenger_cost),
        "baseline_cost": cost_data(item.baseline_cost),
        "saving": rounded(item.saving),
        "saving_interval": [rounded(end) for end in item.saving_interval],
        "winner": item.winner,
        "obstacle": item.obstacle,
    }


def _decision(found: Answer, estimates: Sequence[Estimate]) -> dict[str, Any]:
    """Which is cheapest at a day's prices, and the deciding costs: without compile time if ``without_compile``."""
    decision = found.decided
    return {
        "on": decision.on.isoformat(),
        **which("cheapest", estimates, found.winner),
        "probability": maybe(found.probability),
        "clear": found.clear,
        "obstacle": found.obstacle,
        "without_compile": found.without_compile,
        "instances": [
            {
                "priced_as": item.name,
                "instance_count": item.instance_count,
                **amount(cost),
                "probability_cheapest": None if found.obstacle else maybe(chance),
                "break_even": None if even is None else _even(even, estimates),
            }
            for item, cost, chance, even in zip(
                estimates, decision.costs, decision.probabilities, decision.break_evens, strict=True
            )
        ],
    }


def _even(even: BreakEven, estimates: Sequence[Estimate]) -> dict[str, Any]:
    return {
        **which("against", estimates, even.against),
        "usd_per_hour": rounded(even.usd_per_hour),
        "interval_usd_per_hour": [rounded(even.low_usd_per_hour), rounded(even.high_usd_per_hour)],
    }


def which(what: str, estimates: Sequence[Estimate], place: int | None) -> dict[str, Any]:
    """One of the estimates, by name and number of instances, as several may have the same name."""
    item = None if place is None else estimates[place]
    return {what: item and item.name, f"{what}_instance_count": item and item.instance_count}


def rounded(value: float) -> float:
    """A value with six significant digits."""
    return float(f"{value:.6g}")


def maybe(value: float | None) -> float | None:
    """A value with six significant digits; None stays None."""
    return None if value is None else rounded(value)
