"""Plans as data for JSON: units in the names, reasons where there is no plan."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from windtunnel.priceperf.money.plan import Place, Plan, Plans
from windtunnel.reports.modelled.data import cost_data, rounded

_FIXED = ("tensor_parallel", "pipeline_parallel", "microbatch", "recompute", "zero", "attention")
"""What a user can fix instead of searching for it."""


def plans_data(found: Plans) -> dict[str, Any]:
    """Everything that the report shows, and all plans; ``cheapest``, ``fastest`` and ``pareto`` hold indices of
    ``plans``.

    A plan's ``hours`` count from the request; ``billable_hours``, which its cost is for, from the start of its
    instances.
    """
    number = {id(plan): index for index, plan in enumerate(found.plans)}
    job = found.job
    return {
        "job": {
            "parameters": rounded(job.parameters),
            "sequence_length": job.sequence_length,
            "global_batch": job.global_batch,
            "lora": None if job.lora is None else asdict(job.lora),
            "train_samples": found.size.train_samples,
            "fixed": {name: value for name in _FIXED if (value := getattr(job, name)) is not None},
        },
        "deadline_hours": found.deadline_hours,
        "budget_usd": found.budget_usd,
        "candidates": found.candidates,
        "fitting": found.fitting,
        "places": [_place(place) for place in found.places],
        "plans": [_plan(plan, found) for plan in found.plans],
        "cheapest": [number[id(plan)] for plan in found.cheapest],
        "fastest": [number[id(plan)] for plan in found.fastest],
        "pareto": [number[id(plan)] for plan in found.pareto],
        "nearest": None if found.nearest is None else number[id(found.nearest)],
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        "name": place.name,
        "candidates": place.candidates,
        "fitting": place.fitting,
        "reason": place.reason,
        "software": place.software,
    }


def _plan(plan: Plan, found: Plans) -> dict[str, Any]:
    item, training = plan.estimate, plan.training
    return {
        "instance_type": item.instance.name,
        "priced_as": item.name,
        "instances": item.instance_count,
        "tensor_parallel": training.tensor_parallel,
        "pipeline_parallel": training.pipeline_parallel,
        "data_parallel": training.data_parallel,
        "microbatch": int(training.microbatch),
        "microbatches": round(training.microbatches),
        "recompute": training.recompute,
        "attention": training.attention,
        "zero": training.zero,
        "memory_part": rounded(plan.memory.part),
        "step_s": rounded(item.step.total_s),
        "hours": rounded(plan.hours),
        "billable_hours": rounded(item.billable_s / 3600),
        "hours_interval": [rounded(end) for end in plan.hours_interval],
        "cost": None if plan.cost is None else cost_data(plan.cost),
        "within_limits": plan.within(found.deadline_hours, found.budget_usd),
        "outside_range": list(item.range_check.outside),
    }
