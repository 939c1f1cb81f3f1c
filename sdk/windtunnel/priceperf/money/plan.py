"""Plans for a job (instance type, number, split): every one that fits the memory, with time and cost.

For each cluster, `splits` finds the fastest way for each pair of tensor and pipeline parallelism. On one
cluster the fastest way is also the cheapest, so the best plan is always among them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from ..calibration.calibrations import calibrated, not_calibrated
from ..calibration.software import attention_of, first_told, software_named
from ..errors import InvalidInput, NotCalibrated
from ..instances import GIB, InstanceType, instance_types, named_instance
from ..model.fixed_costs import FixedCost
from ..model.memory_need import MemoryNeed, memory_need
from ..model.plain_script import is_plain
from ..model.training_settings import Training
from ..workload.cluster import Cluster, Run, no_cluster
from ..workload.full_scale import FullScale
from ..workload.splits import OpenSplit, Searched, batch_that_divides, search
from ..workload.workload import Workload
from .estimate import Cost, Estimate, cost_on, estimate
from .prices import PriceBook

MOST_NODES = 64
"""The most instances of a plan if the caller names no numbers."""


@dataclass(frozen=True, repr=False)
class Plan:
    """One way to run the job. ``cost``: None if the instance has no price."""

    estimate: Estimate
    cost: Cost | None

    def __str__(self) -> str:
        """Instances, split, hours and cost."""
        item, its = self.estimate, self.training
        split = f"tp{its.tensor_parallel} pp{its.pipeline_parallel} dp{its.data_parallel}"
        cost = "no price" if self.cost is None else f"${self.cost.usd:,.2f}"
        return f"{item.instance_count} x {item.name}, {split}: {self.hours:,.1f} h, {cost}"

    def __repr__(self) -> str:
        """The same, instead of tens of thousands of characters."""
        return f"<Plan: {self}>"

    @property
    def training(self) -> Training:
        """The job with its split."""
        assert self.estimate.training is not None  # noqa: S101  a description always has one
        return self.estimate.training

    @property
    def memory(self) -> MemoryNeed:
        """The memory that one worker needs, which it has."""
        return memory_need(self.training, self.estimate.instance)

    @property
    def hours(self) -> float:
        """Hours from the request to the model: the start (provisioning, not billed) and the billed time."""
        return (self.estimate.billable_s + self.start.seconds) / 3600

    @property
    def hours_interval(self) -> tuple[float, float]:
        """Low and high end of `hours`."""
        low, high = self.estimate.billable_interval_s
        return (low + self.start.low_s) / 3600, (high + self.start.high_s) / 3600

    @property
    def start(self) -> FixedCost:
        """The time of provisioning, which is not billed."""
        return self.estimate.fixed_cost("start")

    def most_samples(self, deadline_hours: float | None, budget_usd: float | None) -> float:
        """Samples that whole steps can train within deadline and budget; with a budget but no price 0."""
        item, seconds = self.estimate, math.inf
        if deadline_hours is not None:
            seconds = deadline_hours * 3600 - self.start.seconds
        if budget_usd is not None:
            an_hour = math.inf if self.cost is None else self.cost.price.usd_per_hour * item.instance_count
            seconds = min(seconds, budget_usd / an_hour * 3600)
        steps = (seconds - (item.billable_s - item.train_s)) / item.step.total_s
        return max(0.0, steps // 1 * item.global_batch)

    def within(self, deadline_hours: float | None, budget_usd: float | None) -> bool:
        """Whether the middle of time and cost is within deadline and budget; without a price it is within no budget."""
        in_time = deadline_hours is None or self.hours <= deadline_hours
        return in_time and (budget_usd is None or (self.cost is not None and self.cost.usd <= budget_usd))


@dataclass(frozen=True)
class Place:
    """The result of the search on one instance type. ``name``: as requested; ``reason``: why there is no plan.

    ``software``: the one whose speed the plans have; None: no named software has rows for this chip.
    """

    name: str
    instance: InstanceType
    candidates: int = 0
    fitting: int = 0
    reason: str | None = None
    software: str | None = None


@dataclass(frozen=True)
class Plans:
    """All plans, cheapest first; those without a price last, fastest first."""

    job: OpenSplit
    size: FullScale
    plans: tuple[Plan, ...]
    places: tuple[Place, ...]
    deadline_hours: float | None = None
    budget_usd: float | None = None

    @property
    def candidates(self) -> int:
        """Number of ways that were tried."""
        return sum(place.candidates for place in self.places)

    @property
    def fitting(self) -> int:
        """Number of ways that fit the memory."""
        return sum(place.fitting for place in self.places)

    @cached_property
    def within(self) -> tuple[Plan, ...]:
        """The plans within deadline and budget, cheapest first."""
        return tuple(plan for plan in self.plans if plan.within(self.deadline_hours, self.budget_usd))

    @property
    def lacks_prices(self) -> bool:
        """Whether there is a budget, and no plan has a price to hold against it."""
        return self.budget_usd is not None and all(plan.cost is None for plan in self.plans)

    @property
    def cheapest(self) -> tuple[Plan, ...]:
        """The plans of `within` that have a price, cheapest first."""
        return tuple(plan for plan in self.within if plan.cost is not None)

    @cached_property
    def fastest(self) -> tuple[Plan, ...]:
        """The plans of `within`, fastest first; of equally fast ones the cheaper first."""
        return tuple(sorted(self.within, key=lambda plan: plan.hours))

    @cached_property
    def pareto(self) -> tuple[Plan, ...]:
        """The Pareto front of `within`: plans that no other beats in both time and cost, cheapest first."""
        return pareto(self.within)

    @cached_property
    def nearest(self) -> Plan | None:
        """If no plan is within deadline and budget, the one whose larger excess over them (as a ratio) is smallest."""
        if self.within or not self.plans:
            return None
        return min(self.plans, key=self._misses)

    def best_on(self, name: str) -> Plan | None:
        """The best plan on an instance of `places`: the cheapest within the limits, or else the nearest to them."""
        own = [plan for plan in self.plans if plan.estimate.name == name]
        kept = (plan for plan in own if plan.within(self.deadline_hours, self.budget_usd))
        return next(kept, None) or min(own, key=self._misses, default=None)

    def _misses(self, plan: Plan) -> float:
        late = plan.hours / self.deadline_hours if self.deadline_hours else 0.0
        if self.budget_usd is None:
            return late
        return math.inf if plan.cost is None else max(late, plan.cost.usd / self.budget_usd)


def pareto(plans: Iterable[Plan]) -> tuple[Plan, ...]:
    """The Pareto front of time and cost, cheapest first; plans without a price are left out."""
    front: list[Plan] = []
    priced = [(plan.cost.usd, plan.hours, plan) for plan in plans if plan.cost is not None]
    for _, hours, plan in sorted(priced, key=lambda item: item[:2]):
        if not front or hours < front[-1].hours:
            front.append(plan)
    return tuple(front)


def plans(
    job: OpenSplit,
    instances: Sequence[str],
    size: FullScale,
    *,
    nodes: int | Sequence[int] | None = None,
    software: Sequence[str] = (),
    deadline_hours: float | None = None,
    budget_usd: float | None = None,
    prices: PriceBook | None = None,
    on: date | None = None,
) -> Plans:
    """Find every plan that fits the memory. Deterministic: the same arguments give the same plans.

    Args:
        job: the training, with the parts of its split that are fixed.
        instances: names as for `instance_type`, or a family (``trn1``: its largest type, as SageMaker
            training). Types that no calibration models are listed in `Plans.places`.
        size: of the whole job.
        nodes: the number of instances, or several to try; None: 1 to `MOST_NODES`.
        software: possible training software. On each instance the first one counts that has published rows of the
            chip; if none has, on GPUs a plain script that is named.
        deadline_hours: for the whole job, with provisioning; None: no limit.
        budget_usd: US dollars for the whole job; None: no limit.
        prices: a price book; None: the built-in one.
        on: the day whose prices count; None: the newest.

    Raises:
        UnknownInstance: an unknown instance name.
        NotCalibrated: no calibration models any of the instances.
        InvalidInput: no instances, numbers out of range, or software without published rows.
    """
    software = [software_named(name) for name in software]
    for name, limit in (("deadline_hours", deadline_hours), ("budget_usd", budget_usd)):
        if limit is not None and not (limit > 0 and math.isfinite(limit)):
            raise InvalidInput(f"{name} must be above 0, not {limit}")
    if not instances:
        raise InvalidInput("name at least one instance type to plan for, as trn1 or ml.p4d.24xlarge")
    book = prices or PriceBook()
    asked_for = [nodes] if isinstance(nodes, int | float) else nodes
    counts = range(1, MOST_NODES + 1) if asked_for is None else sorted(set(asked_for))
    if not counts:
        raise InvalidInput("name at least one number of instances")
    found: list[Plan] = []
    places = []
    names = list(map(named_instance, instances))
    asked = dict(zip(names, instance_types(names), strict=True))
    for name, instance in asked.items():
        place, own = _placed(job, name, instance, counts, size, software, book, on)
        places.append(place)
        found += own
    if not any(place.instance.calibration for place in places):
        raise NotCalibrated(" ".join([*(place.reason or "" for place in places), calibrated()]))
    found.sort(key=lambda plan: (math.inf if plan.cost is None else plan.cost.usd, plan.hours))
    return Plans(job, size, tuple(found), tuple(places), deadline_hours, budget_usd)


def _placed(
    job: OpenSplit,
    name: str,
    instance: InstanceType,
    counts: Sequence[int],
    size: FullScale,
    software: Sequence[str],
    book: PriceBook,
    on: date | None,
) -> tuple[Place, list[Plan]]:
    if not instance.calibration:
        return Place(name, instance, reason=not_calibrated(instance)), []
    if instance.trains_alone:
        counts = [count for count in counts if count == 1]
        if not counts:
            return Place(name, instance, reason=no_cluster(instance)), []
    trainer = first_told(software, instance)
    if trainer is None and not instance.is_neuron:
        trainer = next(filter(is_plain, software), None)
    attention = attention_of(job.attention, trainer, instance, job.architecture, job.sequence_length)
    job = job._replace(attention=attention, plain=is_plain(trainer))
    results = [(cluster, search(job, cluster)) for cluster in (Cluster(instance, count) for count in counts)]
    own = [
        _plan(job, cluster, training, size, name, trainer, book, on)
        for cluster, result in results
        for _, training in result.best
    ]
    searched = [result for _, result in results]
    candidates, fitting = sum(one.candidates for one in searched), sum(one.fitting for one in searched)
    reason = None if own else _why_not(job, instance, counts, searched)
    return Place(name, instance, candidates, fitting, reason, trainer), own


def _plan(
    job: OpenSplit,
    cluster: Cluster,
    training: Training,
    size: FullScale,
    name: str,
    software: str | None,
    book: PriceBook,
    on: date | None,
) -> Plan:
    workload = Workload.transformer(
        job.architecture,
        microbatch=int(training.microbatch),
        sequence_length=job.sequence_length,
        global_batch=int(job.global_batch),
        tensor_parallel=training.tensor_parallel,
        pipeline_parallel=training.pipeline_parallel,
        recompute=training.recompute,
        zero=training.zero,
        attention=training.attention,
        parameters=job.parameters,
        software=software,
        lora_rank=None if job.lora is None else job.lora.rank,
        lora_targets=None if job.lora is None else job.lora.targets,
    )
    precision = workload.precisions(cluster.instance)[0]
    item = estimate(workload, Run(cluster, float(job.global_batch), precision), size, name)
    return Plan(item, cost_on(item, book, on))


def _why_not(
    job: OpenSplit, instance: InstanceType, counts: Sequence[int], searched: Sequence[Searched]
) -> str:
    needs = [memory_need(one.least, instance) for one in searched if one.least is not None]
    batch = f"{job.global_batch:,} sequence{'' if job.global_batch == 1 else 's'}"
    tried = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    if job.tensor_parallel is not None and instance.core_count % job.tensor_parallel:
        return (
            f"A plan's tensor parallelism stays inside an instance, and {job.tensor_parallel} does not divide the "
            f"{instance.core_count} {instance.core_name}s of {instance.name}."
        )
    if not needs:
        workers = counts[0] * instance.core_count
        near = batch_that_divides(job.global_batch, workers)
        if near == job.global_batch and job.is_partly_fixed:
            return (
                f"What is fixed of the split does not divide {tried} x {instance.name} ({instance.core_count} "
                f"{instance.core_name}s each) and {batch} a step: fix less of it, or allow "
                "other numbers of instances."
            )
        return (
            f"No split of {batch} a step divides {tried} x {instance.name} "
            f"({instance.core_count} {instance.core_name}s each): try a global batch of {near:,}"
            f"{', or fix less of the split' if job.is_partly_fixed else ''}."
        )
    least = min(needs, key=lambda need: need.needed_bytes)
    return (
        f"Nothing fits {tried} x {instance.name}: at the least {least.needed_bytes / GIB:.1f} GiB of the "
        f"{least.usable_bytes / GIB:.1f} GiB that tensors can use of a {instance.core_name}. Allow "
        f"{'a larger instance' if instance.trains_alone else 'more instances'}, or a shorter sequence."
    )
