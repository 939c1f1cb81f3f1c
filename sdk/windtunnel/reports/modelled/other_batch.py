"""What another global batch would change: one with which the comparison has a winner, or has another one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from windtunnel.priceperf import (
    Answer,
    BatchRule,
    Cluster,
    Comparison,
    DescribedWorkload,
    Estimate,
    FullScale,
    InvalidInput,
    Precision,
    PriceBook,
    Run,
    Workload,
)
from windtunnel.priceperf.money.estimate import cost_on, estimate
from windtunnel.priceperf.money.winner import answer
from windtunnel.priceperf.workload.full_scale import LARGEST
from windtunnel.reports.modelled.cheapest import probability
from windtunnel.reports.modelled.labels import label

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
        if batch % of_pass or not 1 <= batch <= LARGEST:  # its passes would differ from those described
            continue
        best, then = _cheapest(found, comparison, workload, size, book, batch)
        if best is not None and then.obstacle is None:
            option = "--global-batch" if described and described.global_batch is not None else "--batch"
            return (
                f"With a global batch of {batch:,} one is ({option} {batch}): then {label(best)} costs least."
            )
    return "No other batch was found that lies inside."


def by_other_batch(
    found: Answer, comparison: Comparison, workload: Workload, size: FullScale, book: PriceBook
) -> Iterator[str]:
    """Whom another batch than the default of a rehearsed job makes the cheapest: that of the script on each worker, as
    it has where nobody changes it; if the instances have several batches, the largest on all.
    """
    batches, now = {round(item.global_batch) for item in comparison.estimates}, found.decided.cheapest
    if comparison.batch_rule != "rehearsed" or workload.rehearsed is None or now is None:
        return
    rule: BatchRule = "per_device" if len(batches) == 1 else max(batches)
    what = f"one batch of {rule:,}" if isinstance(rule, int) else "the script's batch on each worker"
    best, then = _cheapest(found, comparison, workload, size, book, rule)
    if best is None or label(best) == label(comparison.estimates[now]):
        return
    if then.obstacle in (None, "outside"):
        sure = ", outside the calibrated range" if then.obstacle else ""
        option = f"--batch {str(rule).replace('_', '-')}"
        yield f"With {what} ({option}): {label(best)}, {probability(then.decided.probability)}{sure}."


def _cheapest(
    found: Answer,
    comparison: Comparison,
    workload: Workload,
    size: FullScale,
    book: PriceBook,
    rule: BatchRule,
) -> tuple[Estimate | None, Answer]:
    """The cheapest by this rule, and the answer; also among instances on which the job cannot run at its own batch.
    None: the job cannot run on one of the others.
    """

    def run(cluster: Cluster, precision: Precision) -> Run:
        return Run(cluster, workload.batch(cluster, rule, cluster.count), precision)

    own = {
        item.calibration.key: item.correction for item in comparison.estimates if item.correction is not None
    }
    estimates = []
    for item in comparison.estimates:
        cluster = Cluster(item.instance, item.instance_count)
        try:
            estimates.append(estimate(workload, run(cluster, item.precision), size, item.name, own))
        except InvalidInput:  # less than one sample for each worker
            return None, found
    for name, cluster, _ in comparison.not_possible:
        precision = workload.precisions(cluster.instance)[0]
        with suppress(InvalidInput):
            if cluster.count == 1 or not cluster.instance.trains_alone:
                estimates.append(estimate(workload, run(cluster, precision), size, name, own))
    costs = [cost_on(item, book, found.decided.on) for item in estimates]
    then = answer(found.decided.on, estimates, costs)
    best = then.decided.cheapest
    return (None if best is None else estimates[best]), then
