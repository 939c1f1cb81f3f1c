"""What a Slurm job would take on 1 to 64 real nodes: strong and weak scaling from its rehearsal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

from windtunnel.priceperf import (
    Corrections,
    Cost,
    CountedWorkload,
    DescribedWorkload,
    Estimate,
    FullScale,
    Price,
    Scaling,
    Workload,
    instance_type,
    scaling,
)
from windtunnel.priceperf.money.scaling import ScalingMode
from windtunnel.priceperf.published.bert_scaling import Held, held, is_bert_large
from windtunnel.priceperf.workload.cluster import Cluster
from windtunnel.reports.cluster.bill import Prices


@dataclass(frozen=True)
class Modelled:
    """A job on more and more nodes of the type that it ran on, at EC2's prices; `sagemaker` gives SageMaker's.

    One step of a worker, or of one copy of a model that several share, is ``passes`` passes of ``samples_of_pass``
    samples. ``published``: AWS's figures of BERT-Large beside their predictions; empty for another model.
    """

    passes: int
    samples_of_pass: float
    full_scale: FullScale
    strong: Scaling
    weak: Scaling
    prices: Prices
    published: tuple[Held, ...]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The estimates of all rows on which the job can run."""
        rows = (*self.strong.rows, *self.weak.rows)
        return tuple(row.estimate for row in rows if row.estimate is not None)

    @property
    def same(self) -> tuple[Held, ...]:
        """The published figures of this job's own configuration."""
        return tuple(item for item in self.published if item.counted is not None)

    def sagemaker(self, estimate: Estimate) -> Cost | None:
        """The cost of an estimate on SageMaker; None without a price."""
        return None if self.prices.sagemaker is None else estimate.cost(self.prices.sagemaker)

    def published_at(self, nodes: int, global_batch: float | None) -> Held | None:
        """AWS's figure for this job's configuration on so many nodes with that batch; None where there is none."""
        return next(
            (
                item
                for item in self.same
                if (item.published.row.nodes, item.published.row.training.global_batch)
                == (nodes, global_batch)
            ),
            None,
        )


def modelled(
    workload: Workload,
    full_scale: FullScale | None,
    prices: Prices,
    corrections: Corrections | None = None,
) -> Modelled:
    """Model the job. Strong scaling keeps its global batch, with more passes on fewer nodes; weak scaling keeps the
    passes of each worker.

    Raises:
        NotCalibrated: its instance type has no calibration.
    """
    ran = workload.rehearsed
    assert ran is not None  # noqa: S101 - it is read from counters
    cluster = Cluster(instance_type(ran.instance_type), ran.instance_count)
    own = workload.batch(cluster, "rehearsed", cluster.count)
    published: tuple[Held, ...] = ()
    accumulating, copies, of_pass = workload, cluster.workers, 1.0
    if isinstance(workload, CountedWorkload):
        accumulating, of_pass = workload.accumulating(), workload.step.samples
        published = held(workload) if is_bert_large(workload) else ()
    elif isinstance(workload, DescribedWorkload):
        copies, of_pass = workload.data_parallel(cluster), workload.microbatch or 1.0
    size = workload.sized(full_scale)

    def table(mode: ScalingMode) -> Scaling:
        found = scaling(
            accumulating if mode == "strong" else workload,
            prices.instance_type,
            mode=mode,
            full_scale=size,
            corrections=corrections,
            global_batch=own,
            instance_count=cluster.count,
        )
        return _priced(found, prices.ec2)

    strong, weak = (table(mode) for mode in get_args(ScalingMode))
    passes = max(1, round(own / copies / of_pass))
    return Modelled(passes, of_pass, size, strong, weak, prices, published)


def _priced(table: Scaling, price: Price | None) -> Scaling:
    """The table with costs at the cluster's own price."""
    rows = tuple(
        replace(row, cost=None if row.estimate is None or price is None else row.estimate.cost(price))
        for row in table.rows
    )
    return replace(table, rows=rows)
