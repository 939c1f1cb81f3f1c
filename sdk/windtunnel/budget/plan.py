"""Make a budget of a limit in dollars: what AWS will enforce, and what the model predicts before the job starts. Pure.

AWS has no limit in dollars. It has MaxRuntimeInSeconds, which it enforces even if the process that started the job
is gone. So a budget becomes a lower MaxRuntimeInSeconds: the seconds that the money buys, less those that are billed
in addition to MaxRuntimeInSeconds (`Margin`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from windtunnel.budget.budget import STOP_GRACE_S, Budget, Margin, priced, span, usd
from windtunnel.errors import BudgetExceeded, ConfigurationError
from windtunnel.priceperf import (
    Corrections,
    FullScale,
    Price,
    PriceBook,
    PricePerfError,
    PriceUnknown,
)
from windtunnel.priceperf.model.fixed_costs import transfer
from windtunnel.priceperf.money.billing import SECONDS_PER_HOUR
from windtunnel.rehearsal import Rehearsed, predicted

LEAST_RUN_S = 60
"""Seconds of training below which a job is refused: it would be billed for nothing."""
IMAGE_S = 60
"""Seconds to fetch the training image, before the data; billed, as AWS bills from TrainingStartTime. Assumption."""
UNKNOWN_TRANSFER_S = 120
"""Seconds of a download or upload of unknown size: 12 GiB at the slow end of the model's rate. Assumption."""
_BYTES_PER_GIB = 2**30
_NEVER_S = 1e9
"""Thirty years in seconds: more than any MaxRuntimeInSeconds."""


def plan(
    parameters: Mapping[str, Any],
    max_cost: float,
    *,
    enforced: bool,
    region: str | None,
    on: date,
    prices: PriceBook,
    uploaded_gib: float | None = None,
    full_scale: FullScale | None = None,
    rehearsed: Rehearsed | None = None,
    corrections: Corrections | None = None,
) -> Budget:
    """The `Budget` that a limit gives for a request.

    Args:
        parameters: the request as it would be sent without a budget.
        max_cost: US dollars for the job's instances, inf for no limit; storage, requests and transfer are not
            included.
        enforced: whether AWS runs the job.
        region: the region of the prices; None: any.
        on: the day of the prices.
        prices: the price list.
        uploaded_gib: the size of the job's data, if all of it is uploaded from here; else None.
        full_scale: the real job's size; its ``dataset_gib`` and ``model_gib`` make the margin exact.
        rehearsed: the rehearsal to model the cost from.
        corrections: from the user's own calibration; the budget's lines name them.

    Raises:
        BudgetExceeded: the money does not buy a useful run, or all of the modelled cost's interval lies above it.
        ConfigurationError: an instance has no price, or its capacity is not priced by the hour.
    """
    resources = parameters["ResourceConfig"]
    if resources.get("TrainingPlanArn"):
        raise ConfigurationError(
            "max_cost= with training_plan=: a plan's capacity is paid for in advance, not by the second. "
            "Leave max_cost= out."
        )
    rates = tuple((_price(prices, kind, on, region), count) for kind, count in _groups(resources))
    asked = int(parameters["StoppingCondition"]["MaxRuntimeInSeconds"])
    margin = _margin(resources, full_scale, uploaded_gib, _model_gib(full_scale, rehearsed))
    hourly = math.fsum(price.usd_per_hour * count for price, count in rates)
    bought = asked + margin.total_s
    if math.isfinite(max_cost):
        # `_NEVER_S`: a huge amount would buy more seconds than a number holds, and more than max_run is no use.
        bought = math.floor(min(max_cost / hourly * SECONDS_PER_HOUR, _NEVER_S))
        if hourly * bought / SECONDS_PER_HOUR > max_cost:
            bought -= 1  # the division was rounded up
    left = bought - margin.total_s
    if left < min(LEAST_RUN_S, asked):
        least = hourly * (min(LEAST_RUN_S, asked) + margin.total_s) / SECONDS_PER_HOUR
        raise BudgetExceeded(
            f"max_cost={usd(max_cost)}: {priced(rates)}, buys "
            f"{bought:,} s, of which image, download, upload, stopping "
            f"and a warm pool may take {margin.total_s:,} s. What is left is below {LEAST_RUN_S} s of running. "
            f"Give max_cost={math.ceil(least * 100) / 100:.2f} or more, or fewer or smaller instances."
        )
    budget = Budget(max_cost, rates, asked, min(asked, left), margin, enforced, full_scale=full_scale)
    if rehearsed is not None:
        budget = _with_model(budget, rehearsed, corrections)
    if enforced and budget.cost is not None and budget.cost.low_usd > max_cost:
        raise BudgetExceeded(
            f"max_cost={usd(max_cost)}: the job is modelled to cost {span(budget.cost)} from "
            f"{budget.source} at {priced(rates)}. Nothing was uploaded or started. Raise "
            "max_cost=, train less, choose another instance, or leave rehearsal= and full_scale= out: then AWS "
            f"stops the job after {budget.max_run_s:,} s."
        )
    return budget


def _with_model(budget: Budget, rehearsed: Rehearsed, corrections: Corrections | None) -> Budget:
    workload = rehearsed.workload
    if budget.full_scale is None and workload.unknown_size:
        why = f"the size of the whole job is not known: {workload.unknown_size}. State it with full_scale="
        return replace(budget, unmodelled=why)
    kinds = {price.instance_type for price, _ in budget.prices}
    if len(kinds) > 1:
        return replace(budget, unmodelled="instance groups of several types are not modelled")
    price, _ = budget.prices[0]
    count = sum(number for _, number in budget.prices)
    try:
        estimate = predicted(workload, price.instance_type, count, budget.full_scale, corrections)
    except PricePerfError as error:
        return replace(budget, unmodelled=str(error).rstrip("."))
    if not estimate.fits:
        return replace(budget, unmodelled=f"the job does not fit the memory of {price.instance_type}")
    found = workload.rehearsed and workload.rehearsed.found
    known = budget.full_scale is not None or isinstance(found, FullScale)
    return replace(
        budget,
        estimate=estimate,
        cost=estimate.cost(price),
        source=rehearsed.source,
        full_scale=workload.sized(budget.full_scale) if known else None,
    )


def _groups(resources: Mapping[str, Any]) -> list[tuple[str, int]]:
    groups = resources.get("InstanceGroups") or [resources]
    return [(str(group["InstanceType"]), int(group["InstanceCount"])) for group in groups]


def _price(book: PriceBook, instance_type: str, on: date, region: str | None) -> Price:
    try:
        return book.price(instance_type, on, region)
    except PriceUnknown as error:
        where = f" in {region}" if region else ""
        raise ConfigurationError(
            f"max_cost= needs a price, and no price of {instance_type}{where} is known on {on}. "
            "`windtunnel prices refresh` may fetch it; or give it: fit(prices=PriceBook().adding([Price(...)])), "
            "both from windtunnel.priceperf."
        ) from error


def _model_gib(full_scale: FullScale | None, rehearsed: Rehearsed | None) -> float | None:
    if full_scale is not None and full_scale.model_gib is not None:
        return full_scale.model_gib
    parameters = None if rehearsed is None else rehearsed.workload.saved_weights
    return None if parameters is None else parameters * 4 / _BYTES_PER_GIB


def _margin(
    resources: Mapping[str, Any],
    full_scale: FullScale | None,
    uploaded_gib: float | None,
    model_gib: float | None,
) -> Margin:
    stated = None if full_scale is None else full_scale.dataset_gib
    dataset_gib = uploaded_gib if stated is None else stated
    return Margin(
        STOP_GRACE_S,
        IMAGE_S,
        UNKNOWN_TRANSFER_S if dataset_gib is None else transfer("download", dataset_gib).high_s,
        UNKNOWN_TRANSFER_S if model_gib is None else transfer("upload", model_gib).high_s,
        float(resources.get("KeepAlivePeriodInSeconds") or 0),
        dataset_gib is not None and model_gib is not None,
    )
