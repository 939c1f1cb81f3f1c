"""One job on several instances: time, billable seconds, cost and saving, each with its interval.

Batch rule. Neuron instances keep the rehearsed samples per core and use all
their cores. Other instances get the same GLOBAL batch as the largest Neuron
instance in the comparison (``gpu_batch="global"``), or keep the samples per
worker (``"per_core"``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from . import fixed_costs
from .billing import billable_seconds, cost_usd
from .calibration import CALIBRATIONS, Calibration, check_range
from .catalog import InstanceType, instance_type
from .compute import AUTO_CAST, BF16_AUTOCAST, FP32, TF32, Precision
from .errors import InvalidInput
from .fixed_costs import FixedCost
from .intervals import RangeCheck
from .prices import Price, PriceBook
from .step import StepTime, step_time
from .workload import FullScale, Workload

BatchRule = Literal["global", "per_core"]
BYTES_PER_GIB = 2**30
GPU_PRECISIONS = (TF32, FP32, BF16_AUTOCAST)
"""The first is the one shown; the others tell how much the script's setting matters."""


@dataclass(frozen=True)
class Estimate:
    """One job on one kind of instance, modelled. Seconds; low and high are the ends of the interval."""

    instance: InstanceType
    instance_count: int
    precision: Precision
    samples_per_core: float
    step: StepTime
    steps: int
    calibration: Calibration
    range_check: RangeCheck
    fixed: tuple[FixedCost, ...]

    @property
    def cores(self) -> int:
        """Workers over all instances."""
        return self.instance.core_count * self.instance_count

    @property
    def global_batch(self) -> float:
        """Samples of one step over all workers."""
        return self.samples_per_core * self.cores

    @property
    def samples_per_s(self) -> float:
        """Throughput of the training steps."""
        return self.global_batch / self.step.total_s

    @property
    def train_s(self) -> float:
        """All training steps."""
        return self.steps * self.step.total_s

    @property
    def step_interval_s(self) -> tuple[float, float]:
        """Low and high end of one step's time."""
        return (
            self.step.total_s * math.exp(-self.range_check.log_fast),
            self.step.total_s * math.exp(self.range_check.log_slow),
        )

    @property
    def train_interval_s(self) -> tuple[float, float]:
        """Low and high end of `train_s`."""
        low, high = self.step_interval_s
        return self.steps * low, self.steps * high

    @property
    def billable_s(self) -> int:
        """Whole billable seconds of one instance: steps and the billed fixed costs."""
        return billable_seconds(self.train_s + sum(item.seconds for item in self.fixed if item.billed))

    @property
    def billable_interval_s(self) -> tuple[int, int]:
        """Low and high end of `billable_s`."""
        billed = [item for item in self.fixed if item.billed]
        low, high = self.train_interval_s
        return (
            billable_seconds(low + sum(item.low_s for item in billed)),
            billable_seconds(high + sum(item.high_s for item in billed)),
        )

    def cost(self, price: Price) -> Cost:
        """What it costs at a price."""
        low, high = self.billable_interval_s
        return Cost(
            price,
            cost_usd(price.usd_per_hour, self.billable_s, self.instance_count),
            cost_usd(price.usd_per_hour, low, self.instance_count),
            cost_usd(price.usd_per_hour, high, self.instance_count),
        )


@dataclass(frozen=True)
class Cost:
    """US dollars with their interval, inseparable from the price and its date."""

    price: Price
    usd: float
    low_usd: float
    high_usd: float


@dataclass(frozen=True)
class Verdict:
    """A challenger against a baseline at one day's prices. ``saving`` 0.4: 40 % cheaper; negative: dearer."""

    on: date
    challenger: Estimate
    baseline: Estimate
    challenger_cost: Cost
    baseline_cost: Cost

    @property
    def saving(self) -> float:
        """1 - challenger / baseline."""
        return 1 - self.challenger_cost.usd / self.baseline_cost.usd

    @property
    def saving_interval(self) -> tuple[float, float]:
        """Low and high end of the saving; the two errors are taken as independent."""
        ratio = self.challenger_cost.usd / self.baseline_cost.usd
        up = math.hypot(_up(self.challenger_cost), _down(self.baseline_cost))
        down = math.hypot(_down(self.challenger_cost), _up(self.baseline_cost))
        return 1 - ratio * math.exp(up), 1 - ratio / math.exp(down)

    @property
    def winner(self) -> str | None:
        """The cheaper instance type; None when the interval of the saving holds both answers."""
        low, high = self.saving_interval
        if low > 0:
            return self.challenger.instance.name
        return self.baseline.instance.name if high < 0 else None


@dataclass(frozen=True)
class Comparison:
    """Estimates (one an instance, as shown), the cost of each at each price date, and the verdicts."""

    estimates: tuple[Estimate, ...]
    alternatives: tuple[Estimate, ...]
    costs: tuple[tuple[date, tuple[Cost | None, ...]], ...]
    verdicts: tuple[Verdict, ...]
    batch_rule: BatchRule


def compare(
    workload: Workload,
    instances: Sequence[str],
    full_scale: FullScale | None = None,
    *,
    prices: PriceBook | None = None,
    instance_count: int | None = None,
    gpu_batch: BatchRule = "global",
    trn_precision: Precision = AUTO_CAST,
) -> Comparison:
    """Model one job on each instance, at every date from which their prices hold.

    Verdicts set every Neuron instance against every other instance, with each of `GPU_PRECISIONS`.

    Raises:
        UnknownInstance: an instance type without figures.
        InvalidInput: no instances, or a count below 1.
    """
    if not instances:
        raise InvalidInput("name at least one instance type to compare")
    count = workload.instance_count if instance_count is None else instance_count
    if count < 1:
        raise InvalidInput(f"a job has at least 1 instance, not {count}")
    book = prices or PriceBook()
    kinds = list(dict.fromkeys(instance_type(name) for name in instances))
    per_core = workload.step.samples
    neuron_cores = [kind.core_count for kind in kinds if kind.family == "trn1"]
    reference = per_core * max(neuron_cores or [instance_type(workload.instance_type).core_count]) * count

    def estimate_on(kind: InstanceType, precision: Precision) -> Estimate:
        samples = per_core
        if kind.family != "trn1" and gpu_batch == "global":
            samples = max(1.0, reference / (kind.core_count * count))
        return estimate(workload, kind, count, precision, samples, full_scale)

    shown = tuple(
        estimate_on(kind, trn_precision if kind.family == "trn1" else GPU_PRECISIONS[0]) for kind in kinds
    )
    others = tuple(
        estimate_on(kind, precision)
        for kind in kinds
        if kind.family != "trn1"
        for precision in GPU_PRECISIONS[1:]
    )
    return Comparison(shown, others, _costs(shown, book), _verdicts(shown, others, book), gpu_batch)


def estimate(
    workload: Workload,
    instance: InstanceType,
    instance_count: int,
    precision: Precision,
    samples_per_core: float,
    full_scale: FullScale | None = None,
) -> Estimate:
    """Model one job on one kind of instance. Without ``full_scale``: exactly what was rehearsed."""
    size = full_scale or FullScale(
        train_samples=max(1, workload.samples), evaluation_samples=workload.evaluation_samples
    )
    calibration = CALIBRATIONS[instance.family]
    work = workload.at(samples_per_core, precision)
    step = step_time(work, instance, precision, calibration.constants, instance_count)
    global_batch = samples_per_core * instance.core_count * instance_count
    check = check_range(
        calibration,
        {
            "model size": workload.parameters,
            "sequence length": size.sequence_length,
            "work of a step": math.fsum(work.flops.values()),
        },
    )
    forward = step_time(
        workload.evaluation_at(samples_per_core, precision), instance, precision, calibration.constants
    )
    evaluation_steps = math.ceil(size.evaluation_samples / global_batch) * size.epochs
    model_gib = size.model_gib
    if model_gib is None and workload.parameters is not None:
        model_gib = workload.parameters * 4 / BYTES_PER_GIB
    fixed = (
        fixed_costs.start(),
        fixed_costs.transfer("download", size.dataset_gib),
        fixed_costs.setup(),
        fixed_costs.preparation(size.preparation_s),
        fixed_costs.compilation(
            instance.family,
            workload.graphs,
            size.evaluation_samples > 0,
            size.compile_cached,
            workload.compiled,
        ),
        fixed_costs.evaluation(evaluation_steps * forward.total_s, check.log_fast, check.log_slow),
        fixed_costs.transfer("upload", model_gib),
    )
    return Estimate(
        instance=instance,
        instance_count=instance_count,
        precision=precision,
        samples_per_core=samples_per_core,
        step=step,
        steps=math.ceil(size.train_samples / global_batch) * size.epochs,
        calibration=calibration,
        range_check=check,
        fixed=fixed,
    )


def _costs(
    estimates: Sequence[Estimate], book: PriceBook
) -> tuple[tuple[date, tuple[Cost | None, ...]], ...]:
    """A row a price date; None where the book has no price of an instance at all."""
    priced = [item for item in estimates if book.dates([item.instance.name])]
    return tuple(
        (
            on,
            tuple(
                item.cost(book.price(item.instance.name, on)) if item in priced else None
                for item in estimates
            ),
        )
        for on in book.dates([item.instance.name for item in priced])
    )


def _verdicts(shown: Sequence[Estimate], others: Sequence[Estimate], book: PriceBook) -> tuple[Verdict, ...]:
    result = []
    for challenger in (item for item in shown if item.instance.family == "trn1"):
        for baseline in (item for item in (*shown, *others) if item.instance.family != "trn1"):
            names = [challenger.instance.name, baseline.instance.name]
            result += [
                Verdict(
                    on,
                    challenger,
                    baseline,
                    challenger.cost(book.price(names[0], on)),
                    baseline.cost(book.price(names[1], on)),
                )
                for on in book.dates(names)
            ]
    return tuple(result)


def _up(cost: Cost) -> float:
    return math.log(cost.high_usd / cost.usd) if cost.usd > 0 else 0.0


def _down(cost: Cost) -> float:
    return math.log(cost.usd / cost.low_usd) if cost.low_usd > 0 else 0.0
