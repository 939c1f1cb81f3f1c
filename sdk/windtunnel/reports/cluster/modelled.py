"""What a Slurm job would take on 1 to 64 real nodes: strong and weak scaling from its rehearsal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from windtunnel.priceperf import (
    AUTO_CAST,
    Corrections,
    Cost,
    CountedWorkload,
    Estimate,
    FullScale,
    Price,
    Scaling,
    instance_type,
    scaling,
)
from windtunnel.priceperf.money.scaling import COUNTS, ScalingMode
from windtunnel.priceperf.published.bert_scaling import Held, held, is_bert_large
from windtunnel.priceperf.workload.cluster import Cluster
from windtunnel.reports.cluster.bill import Prices


@dataclass(frozen=True)
class Modelled:
    """A job on more and more nodes of the type that it ran on; costs are EC2's, ``sagemaker`` has the others.

    ``published``: AWS's figures of BERT-Large beside what is predicted of them; empty for another model.
    """

    workload: CountedWorkload
    full_scale: FullScale
    strong: Scaling
    weak: Scaling
    prices: Prices
    published: tuple[Held, ...]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Those of all rows that run."""
        rows = (*self.strong.rows, *self.weak.rows)
        return tuple(row.estimate for row in rows if row.estimate is not None)

    @property
    def same(self) -> tuple[Held, ...]:
        """The published figures of this job's own configuration."""
        return tuple(item for item in self.published if item.counted is not None)

    def sagemaker(self, estimate: Estimate) -> Cost | None:
        """The same on SageMaker."""
        return None if self.prices.sagemaker is None else estimate.cost(self.prices.sagemaker)

    def published_at(self, nodes: int, global_batch: float | None) -> Held | None:
        """The published figure of this job's configuration on so many nodes with that batch."""
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
    workload: CountedWorkload,
    full_scale: FullScale | None,
    prices: Prices,
    corrections: Corrections | None = None,
    counts: Sequence[int] = COUNTS,
) -> Modelled:
    """Model the job. Strong keeps its own global batch, as many passes on fewer nodes as it takes; weak keeps the
    passes of each worker.

    Raises:
        NotCalibrated: its instance type has no calibration.
    """
    accumulating = workload.accumulating()
    own = workload.batch(
        Cluster(instance_type(workload.instance_type), workload.instance_count),
        "rehearsed",
        workload.instance_count,
    )
    size = workload.sized(full_scale)

    def table(mode: ScalingMode) -> Scaling:
        found = scaling(
            accumulating if mode == "strong" else workload,
            prices.instance_type,
            counts,
            mode,
            size,
            trn_precision=AUTO_CAST,
            corrections=corrections,
            global_batch=own,
            instance_count=workload.instance_count,
        )
        return _priced(found, prices.ec2)

    strong, weak = (table(mode) for mode in get_args(ScalingMode))
    published = held(workload) if is_bert_large(workload) else ()
    return Modelled(workload, size, strong, weak, prices, published)


def _priced(table: Scaling, price: Price | None) -> Scaling:
    """At the cluster's own price."""
    rows = tuple(
        replace(row, cost=None if row.estimate is None or price is None else row.estimate.cost(price))
        for row in table.rows
    )
    return replace(table, rows=rows)
