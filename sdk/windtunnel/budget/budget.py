"""A limit on what a job may cost: what of it AWS enforces, and what the model says before the job starts.

AWS has no limit in dollars. It has MaxRuntimeInSeconds, which it keeps by itself, also when the process that
started the job is gone. So a budget becomes a lower MaxRuntimeInSeconds: the seconds that the money buys, less
those that are billed and that MaxRuntimeInSeconds does not end (`Margin`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from windtunnel.errors import BudgetExceeded, ConfigurationError
from windtunnel.priceperf import (
    Corrections,
    Cost,
    Estimate,
    FullScale,
    Precision,
    Price,
    PriceBook,
    PricePerfError,
    PriceUnknown,
)
from windtunnel.priceperf.model.fixed_costs import transfer
from windtunnel.priceperf.money.billing import SECONDS_PER_HOUR
from windtunnel.prices.cache import load
from windtunnel.rehearsal import Rehearsed, predicted, trn_precision
from windtunnel.rendering import format as fmt
from windtunnel.request import instance_groups
from windtunnel.request.training_request import PathUpload, TrainingRequest

LEAST_RUN_S = 60
"""A job that may train for less is not started: it would be billed and bring nothing."""
STOP_GRACE_S = 120
"""From SIGTERM to SIGKILL, billed. CreateTrainingJob, StoppingCondition."""
IMAGE_S = 60
"""Fetching the training image: billed, as AWS bills from TrainingStartTime, before the data come. Assumption."""
UNKNOWN_TRANSFER_S = 120
"""A download or an upload of unknown size: 12 GiB at the slow end of the model's rate. Assumption."""
_BYTES_PER_GIB = 2**30
_NEVER_S = 1e9
"""Thirty years: beyond any MaxRuntimeInSeconds."""


@dataclass(frozen=True)
class Margin:
    """Billed seconds outside what MaxRuntimeInSeconds is sure to end. Of one instance.

    ``transfers_known`` False: at least one of the two sizes was assumed. Downloads that are repeated after a
    spot interruption or a retry are not in it.
    """

    stop_s: float
    image_s: float
    download_s: float
    upload_s: float
    kept_s: float
    """A warm pool, kept after the job: billed to the end of its period unless the next job takes it."""
    transfers_known: bool

    @property
    def total_s(self) -> int:
        """All of it, in whole seconds."""
        return math.ceil(self.stop_s + self.image_s + self.download_s + self.upload_s + self.kept_s)


@dataclass(frozen=True)
class Budget:
    """What ``max_cost`` comes to for one request.

    ``asked_s`` is the estimator's max_run, ``max_run_s`` what keeps the budget. ``enforced``: AWS runs the job,
    and the request carries ``max_run_s``; a rehearsal is neither charged nor shortened.
    """

    max_cost: float
    prices: tuple[tuple[Price, int], ...]
    asked_s: int
    max_run_s: int
    margin: Margin
    enforced: bool
    estimate: Estimate | None = None
    cost: Cost | None = None
    source: str | None = None
    """Of the modelled cost: which rehearsal."""
    full_scale: FullScale | None = None
    unmodelled: str = "no rehearsal to model from"

    @property
    def usd_per_hour(self) -> float:
        """Of all instances together."""
        return math.fsum(price.usd_per_hour * count for price, count in self.prices)

    @property
    def bound_usd(self) -> float:
        """The largest bill that ``max_run_s`` and the margin allow; at most ``max_cost``."""
        return self.usd_per_hour * (self.max_run_s + self.margin.total_s) / SECONDS_PER_HOUR

    def lines(self) -> tuple[str, ...]:
        """For people: the price with its date, the bound, what happens there, what is modelled."""
        margin = f"{self.margin.total_s:,} s of image, download, upload, stopping"
        margin += " and the warm pool" if self.margin.kept_s else ""
        margin += "" if self.margin.transfers_known else " (sizes assumed; full_scale= states them)"
        lowered = self.max_run_s < self.asked_s
        if self.enforced:
            stop = f"AWS stops the job after {self.max_run_s:,} s of running"
            stop += f" (max_run was {self.asked_s:,})" if lowered else ", its max_run"
            first = f"Budget {usd(self.max_cost)}: {_priced(self.prices)}. {stop}; to that may come {margin}."
        else:
            first = (
                f"Budget {usd(self.max_cost)}: nothing is charged here, and max_run stays. On AWS: "
                f"{_priced(self.prices)}, max_run {self.max_run_s:,} s and {margin}."
            )
        bound = (
            f"The instances then cost at most {usd(self.bound_usd)}. At the bound the script gets SIGTERM, "
            f"{STOP_GRACE_S} s later SIGKILL: what it has not saved is lost (checkpoint_s3_uri= saves)."
        )
        return (first, bound, self._modelled_line())

    def unlimited_line(self) -> str:
        """For people, of a job without a limit: what its own max_run allows."""
        return (
            f"No max_cost: by max_run={self.asked_s:,} s the instances may cost up to about {usd(self.bound_usd)}: "
            f"{_priced(self.prices)}."
        )

    def _modelled_line(self) -> str:
        if self.cost is None or self.estimate is None:
            return f"Modelled cost: {self.unmodelled}."
        size = "exactly what was rehearsed; full_scale= states the real job's size"
        if self.full_scale is not None:
            size = f"{self.full_scale.train_samples:,} samples x {self.full_scale.epochs:,}"
        own = self.estimate.correction
        calibration = (
            ""
            if own is None
            else f", step times x {own.factor:.2f} by YOUR CALIBRATION ({', '.join(own.jobs)})"
        )
        return f"Modelled cost, from {self.source} ({size}{calibration}): {_span(self.cost)}."

    def warning(self) -> str | None:
        """What speaks against starting the job; None when the modelled cost is well inside."""
        if self.cost is None or self.estimate is None:
            return None
        low, high = self.estimate.billable_interval_s
        case = None
        if self.cost.low_usd > self.max_cost:
            case = "the whole interval is above it"
        elif self.cost.usd > self.max_cost or self.estimate.billable_s > self.max_run_s:
            case = "it will more likely be stopped than end"
        elif self.cost.high_usd > self.max_cost or high > self.max_run_s:
            case = "it may be stopped before its end"
        if case is None:
            return None
        return (
            f"max_cost={usd(self.max_cost)}: modelled are {_span(self.cost)} and {low:,} to {high:,} s of a "
            f"max_run of {self.max_run_s:,} s: {case}. Raise max_cost=, train less, or choose another instance."
        )


def plan(
    request: TrainingRequest,
    max_cost: float,
    *,
    enforced: bool,
    region: str | None,
    on: date,
    prices: PriceBook | None = None,
    full_scale: FullScale | None = None,
    rehearsed: Rehearsed | None = None,
    corrections: Corrections | None = None,
    unmodelled: str = "no rehearsal to model from",
) -> Budget:
    """What the limit comes to for a request. Pure but for the sizes of local files it would upload.

    Args:
        request: as it would be sent without a budget.
        max_cost: US dollars for the instances of the job, inf for no limit; storage, requests and transfer are
            not in it.
        enforced: AWS runs the job.
        region: whose prices; None: any.
        on: the day of the prices.
        prices: another book than the built-in one with what `windtunnel prices refresh` has fetched.
        full_scale: the real job's size, of which ``dataset_gib`` and ``model_gib`` make the margin exact.
        rehearsed: what to model from.
        corrections: the user's own, which the budget's lines name.
        unmodelled: why ``rehearsed`` is None.

    Raises:
        BudgetExceeded: the money does not buy a useful run, or the modelled cost is surely above it.
        ConfigurationError: an instance without a price, or capacity that is not priced by the hour.
    """
    parameters = request.parameters
    resources = parameters["ResourceConfig"]
    if resources.get("TrainingPlanArn"):
        raise ConfigurationError(
            "max_cost= with training_plan=: a plan's capacity is paid for in advance, not by the second. "
            "Leave max_cost= out."
        )
    book = prices or load().book
    groups = _groups(resources)
    priced = tuple((_price(book, kind, on, region), count) for kind, count in groups)
    asked = int(parameters["StoppingCondition"]["MaxRuntimeInSeconds"])
    parameters_gib = _model_gib(full_scale, rehearsed)
    margin = _margin(request, full_scale, parameters_gib)
    hourly = math.fsum(price.usd_per_hour * count for price, count in priced)
    bought = asked + margin.total_s
    if math.isfinite(max_cost):
        # Money for more than max_run buys nothing more: also an amount whose seconds no number holds.
        bought = math.floor(min(max_cost / hourly * SECONDS_PER_HOUR, _NEVER_S))
        if hourly * bought / SECONDS_PER_HOUR > max_cost:
            bought -= 1  # what the division rounded up
    left = bought - margin.total_s
    if left < min(LEAST_RUN_S, asked):
        least = hourly * (min(LEAST_RUN_S, asked) + margin.total_s) / SECONDS_PER_HOUR
        raise BudgetExceeded(
            f"max_cost={usd(max_cost)}: {_priced(priced)}, buys "
            f"{bought:,} s, of which image, download, upload, stopping "
            f"and a warm pool may take {margin.total_s:,} s. What is left is below {LEAST_RUN_S} s of running. "
            f"Give max_cost={math.ceil(least * 100) / 100:.2f} or more, or fewer or smaller instances."
        )
    budget = Budget(
        max_cost, priced, asked, min(asked, left), margin, enforced, full_scale=full_scale,
        unmodelled=unmodelled,
    )  # fmt: skip
    if rehearsed is not None:
        budget = _with_model(budget, rehearsed, trn_precision(parameters), corrections)
    if enforced and budget.cost is not None and budget.cost.low_usd > max_cost:
        raise BudgetExceeded(
            f"max_cost={usd(max_cost)}: the job is modelled to cost {_span(budget.cost)} from "
            f"{budget.source} at {_priced(priced)}. Nothing was uploaded or started. Raise "
            "max_cost=, train less, choose another instance, or leave rehearsal= and full_scale= out: then AWS "
            f"stops the job after {budget.max_run_s:,} s."
        )
    return budget


def keep(request: TrainingRequest, budget: Budget) -> TrainingRequest:
    """The request with the budget; on AWS with the lower MaxRuntimeInSeconds.

    MaxWaitTimeInSeconds of a spot job stays: waiting is not billed, and it may not be below MaxRuntimeInSeconds.
    """
    if not budget.enforced:
        return replace(request, budget=budget)
    stopping = {**request.parameters["StoppingCondition"], "MaxRuntimeInSeconds": budget.max_run_s}
    return replace(request, parameters={**request.parameters, "StoppingCondition": stopping}, budget=budget)


def usd(value: float) -> str:
    """An amount as a person states it: '$50.00', '$0.034'."""
    return f"${value:,.2f}" if value >= 1 else fmt.dollars(value)


def _with_model(
    budget: Budget,
    rehearsed: Rehearsed,
    precision: Precision,
    corrections: Corrections | None,
) -> Budget:
    kinds = {price.instance_type for price, _ in budget.prices}
    if len(kinds) > 1:
        return replace(budget, unmodelled="instance groups of several types are not modelled")
    price, _ = budget.prices[0]
    count = sum(number for _, number in budget.prices)
    try:
        estimate = predicted(
            rehearsed.workload, price.instance_type, count, budget.full_scale, precision, corrections
        )
    except PricePerfError as error:
        return replace(budget, unmodelled=str(error).rstrip("."))
    return replace(budget, estimate=estimate, cost=estimate.cost(price), source=rehearsed.source)


def _groups(resources: Mapping[str, Any]) -> list[tuple[str, int]]:
    groups = instance_groups.from_request(dict(resources))
    if groups:
        return [(group.instance_type, group.instance_count) for group in groups]
    return [(str(resources["InstanceType"]), int(resources["InstanceCount"]))]


def _price(book: PriceBook, instance_type: str, on: date, region: str | None) -> Price:
    try:
        return book.price(instance_type, on, region)
    except PriceUnknown as error:
        where = f" in {region}" if region else ""
        raise ConfigurationError(
            f"max_cost= needs a price, and no price of {instance_type}{where} is known on {on}. "
            "`windtunnel prices refresh` may fetch it; or give it: fit(prices=PriceBook([*BUILT_IN, "
            "Price(...)])) "
            "from windtunnel.priceperf.money.prices."
        ) from error


def _model_gib(full_scale: FullScale | None, rehearsed: Rehearsed | None) -> float | None:
    if full_scale is not None and full_scale.model_gib is not None:
        return full_scale.model_gib
    parameters = None if rehearsed is None else rehearsed.workload.weights
    return None if parameters is None else parameters * 4 / _BYTES_PER_GIB


def _margin(request: TrainingRequest, full_scale: FullScale | None, model_gib: float | None) -> Margin:
    dataset_gib = full_scale.dataset_gib if full_scale is not None else None
    if dataset_gib is None:
        dataset_gib = _uploaded_gib(request)
    return Margin(
        STOP_GRACE_S,
        IMAGE_S,
        UNKNOWN_TRANSFER_S if dataset_gib is None else transfer("download", dataset_gib).high_s,
        UNKNOWN_TRANSFER_S if model_gib is None else transfer("upload", model_gib).high_s,
        float(request.parameters["ResourceConfig"].get("KeepAlivePeriodInSeconds") or 0),
        dataset_gib is not None and model_gib is not None,
    )


def _uploaded_gib(request: TrainingRequest) -> float | None:
    """GiB of the channels, when all of them are local files that are uploaded first; else None."""
    folders = [upload.path for upload in request.uploads if isinstance(upload, PathUpload)]
    if len(folders) < len(request.parameters.get("InputDataConfig") or []):
        return None
    found = 0
    for folder in folders:
        files = [folder] if folder.is_file() else folder.rglob("*")
        found += sum(file.stat().st_size for file in files if file.is_file())
    return found / _BYTES_PER_GIB


def _priced(prices: tuple[tuple[Price, int], ...]) -> str:
    return " + ".join(
        f"{price.instance_type} x {count} at {fmt.price(price.usd_per_hour)} an hour ({price.region}, "
        f"{price.status}, valid from {price.effective_from})"
        for price, count in prices
    )


def _span(cost: Cost) -> str:
    ends = fmt.interval(fmt.dollars(cost.low_usd), fmt.dollars(cost.high_usd))
    return f"{fmt.dollars(cost.usd)} ({ends})"
