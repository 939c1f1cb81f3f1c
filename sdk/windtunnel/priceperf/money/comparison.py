"""The comparison of one job on several instances: time, billable seconds, cost and saving, each with its interval.

The job uses all cores of each instance. `BatchRule` says which batch each instance gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, NamedTuple

from ..calibration.calibrations import calibration_of
from ..calibration.corrections import Corrections
from ..errors import InvalidInput
from ..instances import InstanceType, instance_types, named_instance
from ..model.precision import Precision, preferring
from ..workload.cluster import BatchRule, Cluster, Run, checked_rule, no_cluster
from ..workload.full_scale import FullScale
from ..workload.workload import Workload
from .estimate import Cost, Estimate, cost_on, estimate
from .prices import PriceBook
from .verdict import Verdict


class NotPossible(NamedTuple):
    """Requested instances on which the job cannot run, and why. ``name``: the one for prices."""

    name: str
    cluster: Cluster
    why: str

    @property
    def label(self) -> str:
        """The name with the number of instances, without which several numbers of one type would be ambiguous."""
        return self.name if self.cluster.count == 1 else f"{self.name} x {self.cluster.count}"


@dataclass(frozen=True)
class Comparison:
    """One estimate for each instance, its cost at each price date, and the verdicts. ``alternatives``: the estimates
    with other precisions. ``costs``: a row for each date, in the order of ``estimates``.

    ``not_calibrated``: requested types that no calibration models. ``size_known``: False if the rehearsal does not show
    the size of the whole job and the caller states none: then there are no verdicts. ``host_known``: see
    `Workload.host_known`.
    """

    estimates: tuple[Estimate, ...]
    alternatives: tuple[Estimate, ...]
    costs: tuple[tuple[date, tuple[Cost | None, ...]], ...]
    verdicts: tuple[Verdict, ...]
    batch_rule: BatchRule
    not_calibrated: tuple[InstanceType, ...] = ()
    size_known: bool = True
    not_possible: tuple[NotPossible, ...] = ()
    host_known: bool = True

    @property
    def is_known(self) -> bool:
        """Whether the size of the job and the host's part of a step are known: else there is no verdict."""
        return self.size_known and self.host_known

    @property
    def one_batch(self) -> bool:
        """Whether the rule gives all instances the same global batch."""
        return self.batch_rule == "global" or isinstance(self.batch_rule, int)

    @property
    def named(self) -> dict[str, InstanceType]:
        """The instances by their names for prices, with those on which the job cannot run."""
        found = {item.name: item.instance for item in self.estimates}
        return found | {left.name: left.cluster.instance for left in self.not_possible}


def compare(
    workload: Workload,
    instances: Sequence[str | tuple[str, int]],
    full_scale: FullScale | None = None,
    *,
    prices: PriceBook | None = None,
    instance_count: int | None = None,
    batch: BatchRule = "rehearsed",
    on: date | None = None,
    trn_precision: Precision | None = None,
    gpu_precision: Precision | None = None,
    corrections: Corrections | None = None,
) -> Comparison:
    """Estimate one job on each instance, at every date on which one of their prices changed.

    Each verdict compares one Neuron instance with one GPU instance, in one of the workload's precisions there.

    Args:
        workload: the work of one step.
        instances: names, or pairs of a name and a number of instances. With ``ml.`` they are priced as
            SageMaker training, without it as EC2; ``trn1`` is ``ml.trn1.32xlarge`` (`named_instance`).
        full_scale: the size of the whole job; None: the one that the rehearsal shows.
        prices: a price book; None: the built-in one.
        instance_count: for names without a number; None: the number of rehearsed instances, or 1.
        batch: see `BatchRule`.
        on: use only the prices in force on that day; None: those of every date of a change.
        trn_precision: of fp32 products on Neuron; None: as the job has it.
        gpu_precision: the one to show if the workload has several on GPUs; None: its first.
        corrections: the user's own, by calibration, for jobs known by their counts (`corrections`).

    Raises:
        UnknownInstance: an instance type without figures.
        NotCalibrated: no calibration models any of them.
        InvalidInput: no instances, a count below 1, or a job that cannot run on any of them.
    """
    rule = checked_rule(batch)
    count = workload.default_count if instance_count is None else instance_count
    asked = chosen_clusters(instances, count)
    chosen = [(name, cluster) for name, cluster in asked if cluster.instance.calibration]
    if not chosen:
        calibration_of(asked[0][1].instance)  # raises NotCalibrated with the reason
    book = prices or PriceBook()
    shown, others, impossible = [], [], []
    for name, cluster in chosen:
        try:
            if cluster.count > 1 and cluster.instance.trains_alone:
                raise InvalidInput(no_cluster(cluster.instance))
            # One batch for any number of instances, or that of as many of the job's own.
            size = workload.batch(cluster, rule, count if rule == "global" else cluster.count)
            first, *rest = [
                estimate(workload, Run(cluster, size, precision), full_scale, name, corrections)
                for precision in preferring(
                    gpu_precision, workload.precisions(cluster.instance, trn_precision)
                )
            ]
        except InvalidInput as error:
            impossible.append((name, cluster, error))
            continue
        shown.append(first)
        others += rest
    if not shown:
        raise impossible[0][2]
    size_known = full_scale is not None or not workload.unknown_size
    costs = _costs(shown, book, on)
    missing = tuple(dict.fromkeys(c.instance for _, c in asked if not c.instance.calibration))
    why = tuple(NotPossible(name, cluster, str(error)) for name, cluster, error in impossible)
    found = Comparison(
        tuple(shown), tuple(others), costs, (), rule, missing, size_known, why, workload.host_known
    )
    return replace(found, verdicts=_verdicts(shown, others, book, on)) if found.is_known else found


def chosen_clusters(
    instances: Sequence[str | tuple[str, int]], count: int
) -> tuple[tuple[str, Cluster], ...]:
    """The requested names for prices, each with its cluster, without repetitions.

    Raises:
        UnknownInstance: an instance type without figures.
        InvalidInput: no instances, or a count below 1.
    """
    if not instances:
        raise InvalidInput("name at least one instance type to compare")
    listed = [instances] if isinstance(instances, str) else instances
    pairs = [(item, count) if isinstance(item, str) else _pair(item) for item in listed]
    named = [(named_instance(name), number) for name, number in pairs]
    types = instance_types(name for name, _ in named)
    chosen = {pair: Cluster(kind, pair[1]) for pair, kind in zip(named, types, strict=True)}
    return tuple((name, cluster) for (name, _), cluster in chosen.items())


def _pair(item: Sequence[Any]) -> tuple[str, int]:
    if len(item) != 2:
        raise InvalidInput(f"an instance is a name or a name with a number of instances, not {item!r}")
    return item[0], item[1]


def _costs(
    estimates: Sequence[Estimate], book: PriceBook, on: date | None
) -> tuple[tuple[date, tuple[Cost | None, ...]], ...]:
    """One row for each price date; None if the book has no price of an instance, or none yet on that date."""
    priced = [item for item in estimates if book.dates([item.name])]
    days = book.dates([item.name for item in priced]) if on is None else (on,)
    return tuple((day, tuple(cost_on(item, book, day) for item in estimates)) for day in days)


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
