"""A comparison and a scaling table as data for JSON: units in the names, reasons where there is no figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from windtunnel.priceperf import (
    Comparison,
    CountedWorkload,
    DescribedWorkload,
    Estimate,
    FullScale,
    Scaling,
    ScalingRow,
    SensitivityRow,
    Workload,
)
from windtunnel.reports.modelled.data import amount, cost_data, maybe, modelled, rounded, which


def comparison_data(
    comparison: Comparison,
    changes: Sequence[SensitivityRow],
    workload: Workload,
    full_scale: FullScale,
) -> dict[str, Any]:
    """Everything that the comparison's report shows."""
    data = modelled(comparison, full_scale)
    tokens = workload.tokens_per_sample or full_scale.sequence_length
    for item, estimate in zip(data["estimates"], comparison.estimates, strict=True):
        item["parts_s"] = {name: rounded(value) for name, value in estimate.step.parts.items()}
        item.update(_split(estimate))
    for on, costs in comparison.costs:
        for item, estimate, cost in zip(data["estimates"], comparison.estimates, costs, strict=True):
            if cost is not None:
                own = next(c for c in item["costs"] if c["on"] == on.isoformat())
                own["usd_per_million_samples"] = amount(estimate.cost_per_million(cost.price))
                if tokens:
                    own["usd_per_million_tokens"] = amount(estimate.cost_per_million(cost.price, tokens))
    return {
        "workload": _workload(workload),
        **data,
        "tokens_per_sample": tokens,
        "sensitivity": [_change(change, comparison.estimates) for change in changes],
    }


def scaling_data(table: Scaling) -> dict[str, Any]:
    """A scaling table, with an object for each number of instances."""
    return {
        "instance_type": table.instance.name,
        "priced_as": table.name,
        "mode": table.mode,
        "precision": table.precision.name,
        "tokens_per_sample": table.tokens_per_sample,
        "rows": [_scaling_row(row) for row in table.rows],
    }


def _workload(workload: Workload) -> dict[str, Any]:
    if isinstance(workload, DescribedWorkload):
        fields = {**asdict(workload), "on_gpu": dict(workload.on_gpu)}
        return {"kind": "described", **fields}
    if isinstance(workload, CountedWorkload):
        return {
            "kind": "counted",
            "rehearsed_on": workload.instance_type,
            "rehearsed_instances": workload.instance_count,
            "samples_per_worker": workload.step.samples,
            "passes": workload.passes,
            "parameters": workload.parameters,
        }
    return {"kind": type(workload).__name__}


def _split(item: Estimate) -> dict[str, Any]:
    training, need = item.training, item.memory
    if training is None or need is None:
        return {"split": None, "memory": None}
    return {
        "split": {
            "tensor_parallel": training.tensor_parallel,
            "pipeline_parallel": training.pipeline_parallel,
            "data_parallel": training.data_parallel,
            "passes": round(training.microbatches),
            "sequences_per_pass": rounded(training.microbatch),
            "recompute": training.recompute,
            "attention": training.attention,
            "zero": training.zero,
        },
        "memory": {
            "needed_bytes": rounded(need.needed_bytes),
            "usable_bytes": rounded(need.usable_bytes),
            "fits": need.fits,
        },
    }


def _change(change: SensitivityRow, estimates: Sequence[Estimate]) -> dict[str, Any]:
    return {
        "change": change.change,
        "assumed": change.assumed,
        "costs": [None if cost is None else amount(cost) for cost in change.costs],
        "fits": list(change.fits),
        **which("cheapest", estimates, change.cheapest),
        "probability": maybe(change.probability),
        "not_possible": list(change.reasons),
    }


def _scaling_row(row: ScalingRow) -> dict[str, Any]:
    item = row.estimate
    data: dict[str, Any] = {
        "instances": row.instances,
        "workers": row.workers,
        "global_batch": row.global_batch,
        "possible": item is not None,
        "reason": row.reason,
    }
    if item is None or row.hours_interval is None:
        return data
    return {
        **data,
        "step_s": rounded(item.step.total_s),
        "parts_s": {name: rounded(value) for name, value in item.step.parts.items()},
        "samples_per_s": rounded(item.samples_per_s),
        "speed_up": maybe(row.speed_up),
        "efficiency": maybe(row.efficiency),
        "hours": rounded(item.billable_s / 3600),
        "hours_interval": [rounded(end) for end in row.hours_interval],
        "cost": None if row.cost is None else cost_data(row.cost),
        "outside_range": list(item.range_check.outside),
        **_split(item),
    }
