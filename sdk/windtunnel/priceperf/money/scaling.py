"""The scaling of a job over the number of instances: the speed-up, and the cost.

Strong scaling: the global batch stays, so each worker gets a smaller part. Weak scaling: each worker
keeps its samples, so the global batch grows. A cluster on which the job cannot run stays in the table,
with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal, get_args

from ..calibration.corrections import Corrections
from ..errors import InvalidInput
from ..instances import InstanceType, instance_type, named_instance
from ..model.precision import Precision, preferring
from ..workload.cluster import Cluster, Run
from ..workload.full_scale import FullScale
from ..workload.workload import Workload
from .estimate import Cost, Estimate, cost_on, estimate
from .prices import PriceBook

ScalingMode = Literal["strong", "weak"]
COUNTS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class ScalingRow:
    """The job on one number of instances. ``estimate`` None: it cannot run there, and ``reason`` says why.

    ``speed_up``: throughput divided by that of `Scaling.base`. ``efficiency``: ``speed_up`` divided by the
    ratio of instances. ``cost``: None without a price.
    """

    instances: int
    workers: int
    global_batch: float | None
    estimate: Estimate | None
    reason: str | None
    speed_up: float | None = None
    efficiency: float | None = None
    cost: Cost | None = None

    @property
    def fits(self) -> bool:
        """False if the job is known to need more memory than a worker has."""
        return self.estimate is None or self.estimate.fits

    @property
    def samples_per_s(self) -> float | None:
        """Throughput of the training steps, samples a second."""
        return None if self.estimate is None else self.estimate.samples_per_s

    @property
    def hours_interval(self) -> tuple[float, float] | None:
        """Low and high end of the billable hours of one instance, fixed costs included."""
        if self.estimate is None:
            return None
        low, high = self.estimate.billable_interval_s
        return low / 3600, high / 3600


@dataclass(frozen=True)
class Scaling:
    """The scaling on one instance type, ``strong`` or ``weak``. ``name``: the instance's name for its price."""

    name: str
    instance: InstanceType
    mode: ScalingMode
    precision: Precision
    rows: tuple[ScalingRow, ...]
    tokens_per_sample: int | None

    @property
    def base(self) -> ScalingRow | None:
        """The row that others are compared with: the first whose memory the job fits, else the first that runs."""
        return _base(self.rows)


def scaling(
    workload: Workload,
    instance: str,
    counts: Sequence[int] = COUNTS,
    mode: ScalingMode = "strong",
    full_scale: FullScale | None = None,
    *,
    prices: PriceBook | None = None,
    on: date | None = None,
    trn_precision: Precision | None = None,
    gpu_precision: Precision | None = None,
    corrections: Corrections | None = None,
    global_batch: float | None = None,
    instance_count: int | None = None,
) -> Scaling:
    """Estimate one job on several numbers of instances of one type.

    Settings that a description leaves open (passes, recomputation, attention, split) are chosen for each cluster, as
    `compare` does. So twice the instances may give more than twice the throughput, if their memory allows faster ones.
    The global batch is the workload's own on the smallest cluster; ``strong`` keeps it, with ``weak`` it
    grows with the instances. ``gpu_precision``, ``corrections``: as for `compare`.
    ``global_batch``: use this one; it is for ``instance_count`` instances (None: the smallest cluster).

    Raises:
        UnknownInstance: no figures for the type.
        InvalidInput: no counts, a count below 1, or an unknown mode.
    """
    if mode not in get_args(ScalingMode):
        raise InvalidInput(f"mode must be strong or weak, not {mode!r}")
    if not counts:
        raise InvalidInput("name at least one number of instances")
    instance = named_instance(instance)
    kind = instance_type(instance)
    clusters = [Cluster(kind, count) for count in sorted(set(counts))]
    size = workload.sized(full_scale)
    precision = preferring(gpu_precision, workload.precisions(kind, trn_precision))[0]
    of_job = None if global_batch is None else (instance_count or clusters[0].count, global_batch)
    book = prices or PriceBook()
    rows = []
    for cluster in clusters:
        batch: float | None = None
        item: Estimate | None = None
        reason: str | None = None
        try:
            if of_job is None:
                of_job = cluster.count, workload.batch(cluster, "rehearsed", cluster.count)
            batch = of_job[1] * cluster.count / of_job[0] if mode == "weak" else of_job[1]
            item = estimate(workload, Run(cluster, batch, precision), size, instance, corrections)
        except InvalidInput as error:
            reason = str(error)
        rows.append(ScalingRow(cluster.count, cluster.workers, batch, item, reason))
    base = _base(rows)
    costs = [None if row.estimate is None else cost_on(row.estimate, book, on) for row in rows]
    rows = [_beside(base, row, cost) for row, cost in zip(rows, costs, strict=True)]
    tokens = workload.tokens_per_sample or size.sequence_length
    return Scaling(instance, kind, mode, precision, tuple(rows), tokens)


def _beside(base: ScalingRow | None, row: ScalingRow, cost: Cost | None) -> ScalingRow:
    if base is None or base.estimate is None or row.estimate is None:
        return row
    speed = row.estimate.samples_per_s / base.estimate.samples_per_s
    return replace(row, speed_up=speed, efficiency=speed * base.instances / row.instances, cost=cost)


def _base(rows: Sequence[ScalingRow]) -> ScalingRow | None:
    running = [row for row in rows if row.estimate is not None]
    return next((row for row in running if row.fits), running[0] if running else None)
