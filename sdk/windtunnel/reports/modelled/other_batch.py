"""A global batch with which the comparison would have a winner."""

from __future__ import annotations

from contextlib import suppress

from windtunnel.priceperf import (
    Answer,
    Cluster,
    Comparison,
    DescribedWorkload,
    FullScale,
    InvalidInput,
    PriceBook,
    Run,
    Workload,
)
from windtunnel.priceperf.money.estimate import cost_on, estimate
from windtunnel.priceperf.money.winner import answer
from windtunnel.priceperf.workload.full_scale import LARGEST

_BATCH_FACTORS = tuple(
    2.0 ** (halves / 2)
    for halves in sorted(range(-24, 25), key=lambda halves: (halves % 2, abs(halves), -halves))
)
"""Factors of the batch to try: powers of two first, from 1. Where instances differ in batch, one for all may do."""


def other_batch(
    found: Answer, comparison: Comparison, workload: Workload, size: FullScale, book: PriceBook
) -> str:
    """In words, a global batch with which there is a winner, if any of those tried gives one."""
    middle = max(item.global_batch for item in comparison.estimates)
    described = workload if isinstance(workload, DescribedWorkload) else None
    of_pass = described.microbatch if described and described.microbatch else 1
    for batch in dict.fromkeys(round(middle * factor) for factor in _BATCH_FACTORS):
        if batch % of_pass:  # its passes would differ from those described
            continue
        if 1 <= batch <= LARGEST and _has_verdict(found, comparison, workload, size, book, batch):
            option = "--global-batch" if described and described.global_batch is not None else "--batch"
            return f"With a global batch of {batch:,} one is ({option} {batch})."
    return "No other batch was found that lies inside."


def _has_verdict(
    found: Answer, comparison: Comparison, workload: Workload, size: FullScale, book: PriceBook, batch: int
) -> bool:
    """Whether there is a winner at this batch, also among instances on which the job cannot run at its own batch."""
    own = {
        item.calibration.key: item.correction for item in comparison.estimates if item.correction is not None
    }
    estimates = []
    for item in comparison.estimates:
        run = Run(Cluster(item.instance, item.instance_count), float(batch), item.precision)
        try:
            estimates.append(estimate(workload, run, size, item.name, own))
        except InvalidInput:  # less than one sample for each worker
            return False
    for name, cluster, _ in comparison.not_possible:
        run = Run(cluster, float(batch), workload.precisions(cluster.instance)[0])
        with suppress(InvalidInput):
            if cluster.count == 1 or not cluster.instance.trains_alone:
                estimates.append(estimate(workload, run, size, name, own))
    costs = [cost_on(item, book, found.decided.on) for item in estimates]
    return answer(found.decided.on, estimates, costs).obstacle is None
