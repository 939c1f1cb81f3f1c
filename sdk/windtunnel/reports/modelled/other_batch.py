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
    PerDevice,
    Precision,
    PriceBook,
    Run,
    Workload,
)
from windtunnel.priceperf.money.estimate import cost_on, estimate
from windtunnel.priceperf.money.winner import answer
from windtunnel.priceperf.workload.full_scale import LARGEST
from windtunnel.reports.modelled.batch_and_prices import each
from windtunnel.reports.modelled.cheapest import probability
from windtunnel.reports.modelled.labels import label

_BATCH_FACTORS = tuple(
    2.0 ** (eighths / 8)
    for eighths in sorted(
        range(-96, 97), key=lambda eighths: (bool(eighths % 8) + bool(eighths % 4), abs(eighths), -eighths)
    )
)
"""Factors of the batch to try: powers of two first, from 1. Where instances differ in batch, one for all may do, and
some have only a narrow range of batches in common.
"""


def other_batch(
    found: Answer, comparison: Comparison, workload: Workload, size: FullScale, book: PriceBook
) -> str:
    """In words, a batch with which there is a winner, if any of those tried gives one."""
    described = workload if isinstance(workload, DescribedWorkload) else None
    for rule in dict.fromkeys(_batches(comparison, workload)):
        batch = rule.samples if isinstance(rule, PerDevice) else rule
        if not 1 <= batch <= LARGEST:
            continue
        best, then = _cheapest(found, comparison, workload, size, book, rule, inside=True)
        if best is not None and then.obstacle is None:
            option = "--global-batch" if described and described.global_batch is not None else "--batch"
            option = "--batch-per-device" if isinstance(rule, PerDevice) else option
            return f"With {option} {batch} {label(best)} costs least, {probability(then.probability)}."
    return "No other batch was found that lies inside."


def _batches(comparison: Comparison, workload: Workload) -> Iterator[int | PerDevice]:
    """What to try: global batches, divided evenly if they can be; for a rehearsed job then as many on each worker."""
    items = comparison.estimates
    middle = max(item.global_batch for item in items)
    workers = max(round(item.global_batch / each(item)) for item in items)
    for factor in _BATCH_FACTORS:
        yield round(middle * factor / workers) * workers or round(middle * factor)
    if workload.rehearsed is not None:
        yield from (PerDevice(max(1, round(max(map(each, items)) * factor))) for factor in _BATCH_FACTORS)


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
    *,
    inside: bool = False,
) -> tuple[Estimate | None, Answer]:
    """The cheapest by this rule, and the answer; also among instances on which the job cannot run at its own batch.
    None: the job cannot run on one of the others, or, with ``inside``, one of those that compete lies
    outside or has other passes than those described.
    """

    def run(cluster: Cluster, precision: Precision) -> Run:
        return Run(cluster, workload.batch(cluster, rule, cluster.count), precision)

    own = {
        item.calibration.key: item.correction for item in comparison.estimates if item.correction is not None
    }

    def estimates() -> Iterator[Estimate]:
        for item in comparison.estimates:
            cluster = Cluster(item.instance, item.instance_count)
            yield estimate(workload, run(cluster, item.precision), size, item.name, own)
        for name, cluster, _ in comparison.not_possible:
            precision = workload.precisions(cluster.instance)[0]
            with suppress(InvalidInput):
                if cluster.count == 1 or not cluster.instance.trains_alone:
                    yield estimate(workload, run(cluster, precision), size, name, own)

    shown, costs = [], []
    try:
        for item in estimates():
            cost = cost_on(item, book, found.decided.on)
            competes = cost is not None and item.fits
            if inside and competes and not (item.range_check.inside and _as_described(item, workload)):
                return None, found  # most batches end at the first instance: the others need not be modelled
            shown.append(item)
            costs.append(cost)
    except InvalidInput:  # less than one sample for each worker
        return None, found
    then = answer(found.decided.on, shown, costs)
    best = then.decided.cheapest
    return (None if best is None else shown[best]), then


def _as_described(item: Estimate, workload: Workload) -> bool:
    """Whether its passes are those of the description, where that states them."""
    if item.training is None or not isinstance(workload, DescribedWorkload):
        return True
    return workload.there(item.instance).microbatch in (None, item.training.microbatch)
