"""The estimate of one job on one kind of instance: time, billable seconds and cost, each with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from ..calibration.calibrations import Calibration, calibration_of
from ..calibration.corrections import Correction, Corrections
from ..errors import PriceUnknown
from ..instances import GIB, InstanceType
from ..model import fixed_costs
from ..model.fixed_costs import Assumed, FixedCost
from ..model.host_tracing import HOST_SPEED
from ..model.intervals import RangeCheck
from ..model.memory_need import MemoryNeed, memory_need
from ..model.precision import Precision
from ..model.step_time import StepTime
from ..model.training_settings import Training
from ..workload.cluster import Run
from ..workload.full_scale import FullScale
from ..workload.modelled import Modelled
from ..workload.workload import Workload
from .billing import billable_seconds, cost_per_million, cost_usd
from .offerings import Offering
from .prices import Price, PriceBook


class Estimate(NamedTuple):
    """The modelled figures of one job on one kind of instance. Seconds; low and high are the interval's ends."""

    instance: InstanceType
    instance_count: int
    precision: Precision
    global_batch: float
    """Samples of one optimizer step over all workers."""
    step: StepTime
    steps: int
    full_steps: float
    """Full steps that take as long as all ``steps``: the last of an epoch may have a smaller batch, and is shorter."""
    calibration: Calibration
    range_check: RangeCheck
    fixed: tuple[FixedCost, ...]
    name: str
    """The name for its price: ``ml.trn1.32xlarge`` for SageMaker, ``trn1.32xlarge`` for EC2."""
    training: Training | None = None
    """The step as a description, split over the instances; None: only counts are known."""
    correction: Correction | None = None
    """The user's own correction, already in ``step``, its interval and the evaluation; None: the model as it is."""
    software_speed: float | None = None
    """See `Modelled.software_speed`."""
    loading_s: float = 0.0
    """Seconds in which all vCPUs prepare the samples of a step; no step is shorter. 0: not known."""

    @property
    def cores(self) -> int:
        """Workers over all instances."""
        return self.instance.core_count * self.instance_count

    @property
    def samples_per_core(self) -> float:
        """Samples of one optimizer step on each worker, on average."""
        return self.global_batch / self.cores

    @property
    def memory(self) -> MemoryNeed | None:
        """The memory that one worker needs; None: not known."""
        return None if self.training is None else memory_need(self.training, self.instance)

    @property
    def fits(self) -> bool:
        """False if the job is known to need more memory than a worker has."""
        need = self.memory
        return need is None or need.fits

    @property
    def samples_per_s(self) -> float:
        """Throughput of the training steps, samples a second."""
        return self.global_batch / self.step.total_s

    @property
    def train_s(self) -> float:
        """Seconds of all training steps."""
        return self.full_steps * self.step.total_s

    @property
    def step_interval_s(self) -> tuple[float, float]:
        """Low and high end of one step's seconds."""
        worked = self.step.total_s - self.step.input_s
        low, high = (
            worked * math.exp(-self.range_check.log_fast),
            worked * math.exp(self.range_check.log_slow),
        )
        loading = _loading(self.loading_s)
        return (low, high) if loading is None else (max(loading.low, low), max(loading.high, high))

    @property
    def train_interval_s(self) -> tuple[float, float]:
        """Low and high end of `train_s`."""
        low, high = self.step_interval_s
        return self.full_steps * low, self.full_steps * high

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

    def fixed_cost(self, name: str) -> FixedCost:
        """The fixed cost of that name."""
        return next(item for item in self.fixed if item.name == name)

    @property
    def preparation(self) -> FixedCost:
        """The fixed cost of what the script does before it trains."""
        return self.fixed_cost("preparation")

    @property
    def assumed_s(self) -> float:
        """Billed seconds of the fixed costs that are assumed: set-up and transfers.

        The others do not count: the user gives preparation, evaluation is modelled like steps, and compile time
        never decides a comparison.
        """
        modelled = ("preparation", "evaluation", "compile")
        return sum(cost.seconds for cost in self.fixed if cost.billed and cost.name not in modelled)

    @property
    def too_small(self) -> bool:
        """Whether the assumed fixed costs take longer than the modelled steps."""
        return self.assumed_s > self.train_s

    def taking(self, name: str, seconds: float) -> Estimate:
        """The same estimate, with exactly ``seconds`` for the fixed cost of that name."""
        known = self.fixed_cost(name)._replace(seconds=seconds, low_s=seconds, high_s=seconds)
        return self._replace(fixed=tuple(known if item.name == name else item for item in self.fixed))

    def cost(self, price: Price) -> Cost:
        """The cost at a price, with its interval."""
        low, high = self.billable_interval_s
        return Cost(
            price,
            cost_usd(price.usd_per_hour, self.billable_s, self.instance_count),
            cost_usd(price.usd_per_hour, low, self.instance_count),
            cost_usd(price.usd_per_hour, high, self.instance_count),
        )

    def cost_per_million(self, price: Price, tokens_per_sample: int = 1) -> Cost:
        """US dollars for a million samples (or tokens) in training steps alone, without fixed costs."""
        per_s = self.samples_per_s * tokens_per_sample
        usd = cost_per_million(price.usd_per_hour * self.instance_count, per_s)
        low, high = (usd * end / self.step.total_s for end in self.step_interval_s)
        return Cost(price, usd, low, high)


@dataclass(frozen=True)
class Cost:
    """US dollars with their interval, and the dated price that they are computed from."""

    price: Price
    usd: float
    low_usd: float
    high_usd: float


def estimate(
    workload: Workload,
    run: Run,
    full_scale: FullScale | None = None,
    name: str | None = None,
    corrections: Corrections | None = None,
) -> Estimate:
    """Estimate one job, run in one way.

    Args:
        workload: the work of one step.
        run: the instances, the batch, and the precision of products.
        full_scale: the size of the whole job; None: the one that the rehearsal shows.
        name: for its price; None: the instance type's SageMaker name.
        corrections: the user's own, by calibration. They correct the model from counts, so they are not applied to a
            described job.

    Raises:
        InvalidInput: as `Workload.sized` and `Workload.modelled`.
        NotCalibrated: no calibration models the instance.
    """
    size = workload.sized(full_scale)
    instance, batch = run.instance, run.batch
    calibration = calibration_of(instance)
    found = workload.modelled(run, size)
    step, check = found.step, found.range_check
    correction = (corrections or {}).get(calibration.key) if found.training is None else None
    if correction is not None:
        check, step = correction.check(check, calibration), correction.step(step)
    loading_s = size.loading_s(batch, instance, run.cluster.count)
    if loading_s > step.total_s:
        step = step._replace(input_s=loading_s - step.total_s)
    evaluation_s, evaluation_loading_s = _evaluation_s(run, size, found)
    evaluation_s *= correction.factor if correction else 1
    model_gib = size.model_gib
    if model_gib is None and workload.saved_weights is not None:
        model_gib = workload.saved_weights * 4 / GIB
    fixed = (
        fixed_costs.START,
        fixed_costs.transfer("download", size.dataset_gib),
        fixed_costs.SETUP,
        fixed_costs.preparation(size.preparation_s, size.tokenised_samples),
        found.compilation,
        fixed_costs.evaluation(evaluation_s, check.log_fast, check.log_slow, _loading(evaluation_loading_s)),
        fixed_costs.transfer("upload", model_gib),
    )
    return Estimate(
        instance=instance,
        instance_count=run.cluster.count,
        precision=run.precision,
        global_batch=batch,
        step=step,
        steps=math.ceil(size.train_samples / batch) * size.epoch_count,
        full_steps=_full_steps(size.train_samples, batch) * size.epoch_count,
        calibration=calibration,
        range_check=check,
        fixed=fixed,
        name=name or instance.name,
        training=found.training,
        correction=correction,
        software_speed=found.software_speed,
        loading_s=loading_s,
    )


def _full_steps(samples: float, batch: float) -> float:
    """Full steps that take as long as an epoch's: a smaller last step is a part of one. An epoch has at least one."""
    return max(1.0, samples / batch) if samples else 0.0


def _evaluation_s(run: Run, size: FullScale, found: Modelled) -> tuple[float, float]:
    """Seconds of all evaluation steps, and those in which the loaders prepare their samples."""
    if found.evaluation_step is None:
        return 0.0, 0.0
    copies = run.cluster.workers if found.training is None else found.training.data_parallel
    together = run.batch if size.evaluation_split else run.batch / copies
    steps = _full_steps(size.evaluated, together) * size.epoch_count
    prepared = size.evaluated * size.epoch_count * (1 if size.evaluation_split else copies)
    loading_s = size.loading_s(prepared, run.instance, run.cluster.count)
    return steps * found.evaluation_step.total_s, loading_s


def _loading(seconds: float) -> Assumed | None:
    """The loading time with its ends, because its rate was measured on another host; None if 0 (not known)."""
    return Assumed(seconds, seconds * HOST_SPEED.low, seconds * HOST_SPEED.high) if seconds else None


def cost_on(
    item: Estimate, book: PriceBook, on: date | None, offering: Offering | None = None
) -> Cost | None:
    """The cost at the price in force on a day (None: the newest); None if there is no price.

    ``offering``: replaces the one that the estimate's name stands for.
    """
    try:
        return item.cost(book.price(item.name, on, offering=offering))
    except PriceUnknown:
        return None
