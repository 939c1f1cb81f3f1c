"""One job on several instances: time, billable seconds, cost and saving, each with its interval.

All cores of each instance are used. `BatchRule` says which batch each gets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from ..calibration.calibrations import Calibration, calibration_of
from ..calibration.corrections import Correction, Corrections
from ..errors import InvalidInput, PriceUnknown
from ..instances import GIB, InstanceType
from ..model import fixed_costs
from ..model.fixed_costs import FixedCost
from ..model.intervals import RangeCheck
from ..model.memory_need import MemoryNeed, memory_need
from ..model.precision import AUTO_CAST, Precision
from ..model.step_time import StepTime
from ..model.training_settings import Training
from ..workload.cluster import BATCH_RULES, BatchRule, Run, chosen_clusters
from ..workload.full_scale import FullScale
from ..workload.workload import Workload
from .billing import billable_seconds, cost_per_million, cost_usd
from .prices import Price, PriceBook


@dataclass(frozen=True)
class Estimate:
    """One job on one kind of instance, modelled. Seconds; low and high are the ends of the interval."""

    instance: InstanceType
    instance_count: int
    precision: Precision
    global_batch: float
    """Samples of one optimizer step over all workers."""
    step: StepTime
    steps: int
    calibration: Calibration
    range_check: RangeCheck
    fixed: tuple[FixedCost, ...]
    name: str
    """Under which name it is priced: ``ml.trn1.32xlarge`` on SageMaker, ``trn1.32xlarge`` on EC2."""
    training: Training | None = None
    """The step as a description, split over the instances; None: only counts are known."""
    correction: Correction | None = None
    """The user's own, in ``step``, its interval and the evaluation; None: the model as it is."""

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
        """What a worker needs of its memory; None: not known."""
        return None if self.training is None else memory_need(self.training, self.instance)

    @property
    def fits(self) -> bool:
        """False where it is known that the job needs more memory than a worker has."""
        need = self.memory
        return need is None or need.fits

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

    def fixed_cost(self, name: str) -> FixedCost:
        """The fixed cost of that name."""
        return next(item for item in self.fixed if item.name == name)

    @property
    def preparation(self) -> FixedCost:
        """What the script does before it trains."""
        return self.fixed_cost("preparation")

    def prepared_in(self, seconds: float) -> Estimate:
        """The same with a preparation of exactly so many seconds."""
        return self._taking("preparation", seconds)

    @property
    def without_compilation(self) -> Estimate:
        """The same with every graph from a compile cache: no answer may rest on a compiler's modelled time."""
        return self._taking("compile", 0.0)

    def _taking(self, name: str, seconds: float) -> Estimate:
        known = replace(self.fixed_cost(name), seconds=seconds, low_s=seconds, high_s=seconds)
        return replace(self, fixed=tuple(known if item.name == name else item for item in self.fixed))

    def cost(self, price: Price) -> Cost:
        """What it costs at a price."""
        low, high = self.billable_interval_s
        return Cost(
            price,
            cost_usd(price.usd_per_hour, self.billable_s, self.instance_count),
            cost_usd(price.usd_per_hour, low, self.instance_count),
            cost_usd(price.usd_per_hour, high, self.instance_count),
        )

    def cost_per_million(self, price: Price, tokens_per_sample: int = 1) -> Cost:
        """US dollars of a million samples (or tokens) in training steps alone, without fixed costs."""
        per_s = self.samples_per_s * tokens_per_sample
        usd = cost_per_million(price.usd_per_hour * self.instance_count, per_s)
        check = self.range_check
        return Cost(price, usd, usd * math.exp(-check.log_fast), usd * math.exp(check.log_slow))


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
        """Low and high end of the saving; see `ratio_width`."""
        ratio = self.challenger_cost.usd / self.baseline_cost.usd
        down, up = ratio_width((self.challenger, self.challenger_cost), (self.baseline, self.baseline_cost))
        return 1 - ratio * math.exp(up), 1 - ratio / math.exp(down)

    @property
    def winner(self) -> str | None:
        """The cheaper instance type; None when the interval of the saving holds both answers.

        Also None where that hangs on the time to compile.
        """
        found = self._winner
        return found if found == self._without_compilation._winner else None

    @property
    def _winner(self) -> str | None:
        low, high = self.saving_interval
        if low > 0:
            return self.challenger.instance.name
        return self.baseline.instance.name if high < 0 else None

    @property
    def _without_compilation(self) -> Verdict:
        one, other = self.challenger.without_compilation, self.baseline.without_compilation
        costs = one.cost(self.challenger_cost.price), other.cost(self.baseline_cost.price)
        return Verdict(self.on, one, other, *costs)


@dataclass(frozen=True)
class Comparison:
    """Estimates (one an instance, as shown), the cost of each at each price date, and the verdicts.

    ``not_calibrated``: what was asked for too, and no calibration models.
    """

    estimates: tuple[Estimate, ...]
    alternatives: tuple[Estimate, ...]
    costs: tuple[tuple[date, tuple[Cost | None, ...]], ...]
    verdicts: tuple[Verdict, ...]
    batch_rule: BatchRule
    not_calibrated: tuple[InstanceType, ...] = ()


def compare(
    workload: Workload,
    instances: Sequence[str | tuple[str, int]],
    full_scale: FullScale | None = None,
    *,
    prices: PriceBook | None = None,
    instance_count: int | None = None,
    batch: BatchRule = "global",
    on: date | None = None,
    trn_precision: Precision = AUTO_CAST,
    corrections: Corrections | None = None,
) -> Comparison:
    """Model one job on each instance, at every date from which their prices hold.

    Verdicts set every Neuron instance against every other instance, with each of the workload's precisions.

    Args:
        workload: what one step is.
        instances: names, or pairs of a name and a number of instances. With ``ml.`` they are priced as
            SageMaker training, without it as EC2.
        full_scale: the real job; None: exactly what was rehearsed.
        prices: another price book than the built-in one.
        instance_count: where ``instances`` names no number; None: as many as were rehearsed.
        batch: see `BatchRule`.
        on: only the prices in force on that day; None: at every date from which prices hold.
        trn_precision: of products on trn1, where the workload leaves it open.
        corrections: a user's own, by calibration, of jobs known by their counts (`corrections`).

    Raises:
        UnknownInstance: an instance type without figures.
        NotCalibrated: no calibration models any of them.
        InvalidInput: no instances, a count below 1, or a job that cannot run on one of them.
    """
    if batch not in BATCH_RULES:
        raise InvalidInput(f"batch must be one of {', '.join(BATCH_RULES)}, not {batch!r}")
    count = workload.default_count if instance_count is None else instance_count
    asked = chosen_clusters(instances, count)
    chosen = [(name, cluster) for name, cluster in asked if cluster.instance.calibration]
    if not chosen:
        calibration_of(asked[0][1].instance)  # says why
    book = prices or PriceBook()
    clusters = [cluster for _, cluster in chosen]
    shown, others = [], []
    for (name, cluster), size in zip(chosen, workload.batches(clusters, batch), strict=True):
        first, *rest = workload.precisions(cluster.instance, trn_precision)
        shown.append(estimate(workload, Run(cluster, size, first), full_scale, name, corrections))
        others += [
            estimate(workload, Run(cluster, size, other), full_scale, name, corrections) for other in rest
        ]
    costs, verdicts = _costs(shown, book, on), _verdicts(shown, others, book, on)
    missing = tuple(dict.fromkeys(c.instance for _, c in asked if not c.instance.calibration))
    return Comparison(tuple(shown), tuple(others), costs, verdicts, batch, missing)


def estimate(
    workload: Workload,
    run: Run,
    full_scale: FullScale | None = None,
    name: str | None = None,
    corrections: Corrections | None = None,
) -> Estimate:
    """Model one job, run in one way.

    Args:
        workload: what one step is.
        run: on which instances, with which batch, how products run.
        full_scale: the real job; None: exactly what was rehearsed.
        name: under which it is priced; None: the instance type's SageMaker name.
        corrections: a user's own, by calibration. They are of the model from counts, so a description takes none.
    """
    size = full_scale or workload.full_scale()
    instance, batch = run.instance, run.batch
    calibration, training = calibration_of(instance), workload.description(run)
    check, step = workload.range_check(run, size), workload.train_step(run)
    correction = (corrections or {}).get(calibration.key) if training is None else None
    if correction is not None:
        check, step = correction.check(check, calibration), correction.step(step)
    evaluation_s = 0.0
    if size.evaluation_samples:
        steps = math.ceil(size.evaluation_samples / batch) * size.epochs
        evaluation_s = (
            steps * workload.evaluation_step(run).total_s * (correction.factor if correction else 1)
        )
    model_gib = size.model_gib
    if model_gib is None and workload.weights is not None:
        model_gib = workload.weights * 4 / GIB
    fixed = (
        fixed_costs.start(),
        fixed_costs.transfer("download", size.dataset_gib),
        fixed_costs.setup(),
        fixed_costs.preparation(size.preparation_s, size.tokenised_samples),
        workload.compilation(run, size),
        fixed_costs.evaluation(evaluation_s, check.log_fast, check.log_slow),
        fixed_costs.transfer("upload", model_gib),
    )
    return Estimate(
        instance=instance,
        instance_count=run.cluster.count,
        precision=run.precision,
        global_batch=batch,
        step=step,
        steps=math.ceil(size.train_samples / batch) * size.epochs,
        calibration=calibration,
        range_check=check,
        fixed=fixed,
        name=name or instance.name,
        training=training,
        correction=correction,
    )


def _costs(
    estimates: Sequence[Estimate], book: PriceBook, on: date | None
) -> tuple[tuple[date, tuple[Cost | None, ...]], ...]:
    """A row a price date; None where the book has no price of an instance at all, or none yet."""
    priced = [item for item in estimates if book.dates([item.name])]
    days = book.dates([item.name for item in priced]) if on is None else (on,)
    return tuple((day, tuple(cost_on(item, book, day) for item in estimates)) for day in days)


def cost_on(item: Estimate, book: PriceBook, on: date | None) -> Cost | None:
    """The cost at the price in force on a day (None: the newest); None where there is none."""
    try:
        return item.cost(book.price(item.name, on))
    except PriceUnknown:
        return None


def _verdicts(
    shown: Sequence[Estimate], others: Sequence[Estimate], book: PriceBook, on: date | None
) -> tuple[Verdict, ...]:
    result = []
    for challenger in (item for item in shown if item.instance.is_neuron):
        for baseline in (item for item in (*shown, *others) if not item.instance.is_neuron):
            names = [challenger.name, baseline.name]
            for day in book.dates(names) if on is None else (on,):
                costs = cost_on(challenger, book, day), cost_on(baseline, book, day)
                if costs[0] is not None and costs[1] is not None:
                    result.append(Verdict(day, challenger, baseline, costs[0], costs[1]))
    return tuple(result)


def ratio_width(one: tuple[Estimate, Cost], other: tuple[Estimate, Cost]) -> tuple[float, float]:
    """How far one cost / the other can lie below and above its middle, in logs.

    The errors of the two are taken as independent, but for the time that the script prepares: that is the
    same on both, whatever it is, and only moves the ratio together.
    """
    if not all(item.preparation.high_s > item.preparation.low_s for item, _ in (one, other)):
        (_, first), (_, second) = one, other
        return math.hypot(_down(first), _up(second)), math.hypot(_up(first), _down(second))

    def prepared(end: str) -> tuple[Cost, Cost]:
        first, second = (
            item.prepared_in(getattr(item.preparation, end)).cost(cost.price) for item, cost in (one, other)
        )
        return first, second

    first, second = prepared("seconds")
    down, up = math.hypot(_down(first), _up(second)), math.hypot(_up(first), _down(second))
    middle = math.log(first.usd / second.usd) if first.usd > 0 < second.usd else 0.0
    for end in ("low_s", "high_s"):
        first, second = prepared(end)
        moved = math.log(first.usd / second.usd) - middle if first.usd > 0 < second.usd else 0.0
        down, up = math.hypot(down, max(0.0, -moved)), math.hypot(up, max(0.0, moved))
    return down, up


def _up(cost: Cost) -> float:
    return math.log(cost.high_usd / cost.usd) if cost.usd > 0 else 0.0


def _down(cost: Cost) -> float:
    return math.log(cost.usd / cost.low_usd) if cost.low_usd > 0 else 0.0
