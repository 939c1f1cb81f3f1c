"""Compare a job that ran on AWS with its estimate. Pure; seconds are those of one instance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from ..calibration.corrections import Evidence, fingerprint
from ..errors import InvalidInput
from ..model.fixed_costs import FixedCost
from ..workload.workload import CountedWorkload
from .billing import cost_usd
from .estimate import Estimate
from .prices import Price

STARTING = ("Starting", "LaunchingMLInstances", "PreparingTrainingStack", "Pending")
"""Secondary statuses before billing begins."""
MOVED = {"download": "Downloading", "upload": "Uploading"}
"""Fixed costs with a secondary status of their own; the other billed ones are in the status Training."""


@dataclass(frozen=True)
class Flight:
    """What AWS reports of a job that has ended.

    ``phases``: seconds in each secondary status, in order. ``training_s``: from start to end on the instances;
    ``billable_s`` differs from it only for spot jobs. ``interrupted``: spot capacity was interrupted.
    ``may_start_warm``: the job had a warm pool, so it may have reused instances (AWS does not say whether it did).
    """

    job: str
    status: str
    instance_type: str
    instance_count: int
    started: date
    training_s: float
    billable_s: float
    phases: Mapping[str, float]
    spot: bool = False
    interrupted: bool = False
    may_start_warm: bool = False


@dataclass(frozen=True)
class Compared:
    """A predicted figure with its interval, and the real one.

    ``real_ends``: low and high end of ``real``, if it contains an assumption; None: AWS states the figure.
    """

    name: str
    predicted: float
    low: float
    high: float
    real: float
    real_ends: tuple[float, float] | None = None

    @property
    def error(self) -> float | None:
        """Predicted / real - 1; None if ``real`` is 0."""
        return self.predicted / self.real - 1 if self.real > 0 else None

    @property
    def inside(self) -> bool:
        """Whether the interval holds the real figure, or overlaps ``real_ends``. Rounded, as AWS's whole seconds."""
        least, most = self.real_ends or (self.real, self.real)
        return math.floor(self.low) <= most and least <= math.ceil(self.high)


@dataclass(frozen=True)
class FlightCheck:
    """A job's predicted and real figures. ``cost``: at that day's price; None without a price, and for spot jobs."""

    flight: Flight
    estimate: Estimate
    clock: Compared
    """Seconds from start to end on the instances: the billable ones, for a spot job before the discount."""
    training: Compared
    """The Training phase: steps, evaluation, and the fixed costs in it."""
    steps: Compared | None
    """Steps and evaluation; ``real``: the Training phase less the fixed costs in it. None: nothing is left of it."""
    phases: tuple[Compared, ...]
    """Start, download and upload, compared with the model's fixed costs."""
    cost: Compared | None
    price: Price | None


def check_flight(flight: Flight, estimate: Estimate, price: Price | None) -> FlightCheck:
    """Compare the estimate of a job with its real figures.

    ``estimate``: for the job's own instances. ``price``: of the day on which it ran; None: there is none.
    """
    real_training = flight.phases.get("Training", 0.0)
    inside = _in_training(estimate)
    low, high = estimate.train_interval_s
    training = Compared(
        "Training",
        estimate.train_s + sum(item.seconds for item in inside),
        low + sum(item.low_s for item in inside),
        high + sum(item.high_s for item in inside),
        real_training,
    )
    evaluation = estimate.fixed_cost("evaluation")
    left, least, most = _without(real_training, _not_modelled(estimate))
    steps = None
    if left > 0:
        steps = Compared(
            "steps and evaluation",
            estimate.train_s + evaluation.seconds,
            low + evaluation.low_s,
            high + evaluation.high_s,
            left,
            (least, most),
        )
    billed = estimate.billable_interval_s
    clock = Compared(
        "Billable", estimate.billable_s, *billed, flight.training_s if flight.spot else flight.billable_s
    )
    cost = None
    if price is not None and not flight.spot:
        expected = estimate.cost(price)
        real = cost_usd(price.usd_per_hour, flight.billable_s, flight.instance_count)
        cost = Compared("Cost", expected.usd, expected.low_usd, expected.high_usd, real)
    return FlightCheck(flight, estimate, clock, training, steps, _phases(flight, estimate), cost, price)


def _phases(flight: Flight, estimate: Estimate) -> tuple[Compared, ...]:
    """The phases outside of Training: start, download and upload."""

    def beside(name: str, shown: str, *phases: str) -> Compared:
        cost, real = estimate.fixed_cost(name), sum(flight.phases.get(phase, 0.0) for phase in phases)
        return Compared(shown, cost.seconds, cost.low_s, cost.high_s, real)

    moved = (beside(name, phase, phase) for name, phase in MOVED.items())
    return (beside("start", "Starting", *STARTING), *moved)


def evidence_of(flight: Flight, estimate: Estimate, workload: CountedWorkload) -> Evidence:
    """What a job shows of the modelled step time. ``estimate``: for its instances, without any correction.

    Raises:
        InvalidInput: the job cannot be used: it did not complete, was interrupted, may have started warm, waits for
            its samples, or its Training phase may consist of fixed costs alone; or ``estimate`` is corrected.
    """
    if estimate.correction is not None:
        raise InvalidInput("evidence is held against the model as it is, not against a corrected estimate")
    reason = None
    if flight.status != "Completed":
        reason = f"it ended as {flight.status}, so its seconds are not those of the whole job"
    elif flight.interrupted:
        reason = "its spot capacity was interrupted, so a part of it was trained twice"
    elif flight.may_start_warm:
        reason = (
            "it had a warm pool, and AWS does not say whether it started in one: set-up and compile time would "
            "then be others than the model assumes"
        )
    elif estimate.step.input_s:
        reason = (
            "by the loader's rate that you state its steps wait for their samples, so its seconds are the loader's, "
            "not the model's"
        )
    if reason is not None:
        raise InvalidInput(f"{flight.job} cannot calibrate: {reason}. Give a job that ran through by itself")
    fixed = _not_modelled(estimate)
    total = flight.phases.get("Training", 0.0)
    real, least, most = _without(total, fixed)
    if least <= 0:
        parts = ", ".join(
            f"{item.name} {item.low_s:,.0f} to {item.high_s:,.0f} s" for item in fixed if item.high_s
        )
        raise InvalidInput(
            f"{flight.job} cannot calibrate: its Training phase of {total:,.0f} s may be fixed costs alone "
            f"({parts}). Give a longer job, or state what is known of it: preparation, compile cache"
        )
    evaluation = estimate.fixed_cost("evaluation").seconds
    return Evidence(
        job=flight.job,
        on=flight.started,
        instance_type=estimate.instance.name,
        instance_count=estimate.instance_count,
        workload=_workload(workload, estimate),
        model=fingerprint(estimate.calibration),
        modelled_s=estimate.train_s + evaluation,
        real_s=real,
        real_low_s=least,
        real_high_s=most,
    )


def _workload(workload: CountedWorkload, estimate: Estimate) -> str:
    work = math.fsum(workload.step.flops.values()) / workload.step.samples
    size = "" if workload.parameters is None else f", {workload.parameters:.4g} parameters"
    return (
        f"{work:.4g} FLOP a sample{size}, {estimate.samples_per_core:g} samples a worker, "
        f"{estimate.cores} workers of {estimate.instance.name}"
    )


def _without(total: float, fixed: Sequence[FixedCost]) -> tuple[float, float, float]:
    """``total`` less these fixed costs: middle, low end, high end."""
    middle, least, most = (
        total - sum(getattr(item, end) for item in fixed) for end in ("seconds", "high_s", "low_s")
    )
    return middle, least, most


def _in_training(estimate: Estimate) -> list[FixedCost]:
    return [item for item in estimate.fixed if item.billed and item.name not in MOVED]


def _not_modelled(estimate: Estimate) -> list[FixedCost]:
    """The fixed costs in the Training phase except evaluation, which is modelled like steps."""
    return [item for item in _in_training(estimate) if item.name != "evaluation"]
