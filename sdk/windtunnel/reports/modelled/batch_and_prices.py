"""Notes under the answer's table: the batch of each instance, how many of its cores work, and which prices are used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timezone

from windtunnel.priceperf import (
    Answer,
    Comparison,
    Cost,
    DescribedWorkload,
    Estimate,
    Price,
    PriceBook,
    Workload,
    by_offering,
    not_calibrated,
)
from windtunnel.priceperf.calibration.published_rows import is_fitted
from windtunnel.priceperf.model.host_tracing import HOST_SPEED
from windtunnel.priceperf.money.offerings import CAPACITY_BLOCK
from windtunnel.priceperf.workload.splits import batch_that_divides
from windtunnel.rendering import format as fmt
from windtunnel.reports.modelled.cheapest import cached, probability
from windtunnel.reports.modelled.labels import (
    bought,
    degrees,
    label,
    machine,
    machines,
    place,
    plain_scripts,
    rule_words,
    sharing,
)

PRICES, MISSING = "Prices: ", "NOT MODELLED"
_STATED = "as you state it"


def missing_words(comparison: Comparison) -> Iterator[str]:
    """Each instance that was asked for and is not in the table, with the reason."""
    for instance in comparison.not_calibrated:
        yield f"{MISSING}: {not_calibrated(instance)}"
    for left in comparison.not_possible:
        yield f"{MISSING}, {left.label.removeprefix('ml.')}: {left.why.partition(';')[0].removesuffix('.')}."


def batch_words(comparison: Comparison, workload: Workload) -> Iterator[str]:
    """Notes on the batch: its rule, the software's speed, a split unusual for GPUs."""
    yield f"Batch: {rule_words(comparison, workload)}."
    yield from _uneven_words(comparison.estimates, workload)
    waiting = [
        f"{fmt.percent(item.step.input_s / item.step.total_s)} on {label(item)}"
        for item in comparison.estimates
        if item.step.input_s
    ]
    if waiting:
        yield (
            f"Part of a step that waits for samples: {', '.join(waiting)}; intervals assume {HOST_SPEED.low:g} to "
            f"{HOST_SPEED.high:g} times your loader's seconds on these hosts."
        )
    if not isinstance(workload, DescribedWorkload):
        return
    yield from _chosen_words(comparison.estimates, workload)
    for its, what in plain_scripts(
        (label(item), item.precision.compiled)
        for item in comparison.estimates
        if item.training is not None and item.training.plain
    ):
        yield f"{' and '.join(its)}: {what}."
    no_row: dict[str, list[str]] = {}
    for item in comparison.estimates:
        job = workload.there(item.instance)
        software = job.software
        if job.network_gbps is not None and item.instance_count > 1:
            yield f"{label(item)}: on a network of {job.network_gbps:g} Gbps, which is not AWS's."
        if item.training is not None and item.training.plain:
            continue
        if software and item.software_speed is None and not is_fitted(software, item.calibration.key):
            no_row.setdefault(software, []).append(label(item))
        elif item.software_speed is not None:
            yield (
                f"{label(item)}: {item.software_speed:.2f} times the modelled speed, as in rows of "
                f"{software}."
            )
    for software, names in no_row.items():
        yield f"No published row of {software} is like {', '.join(names)}: its name changes nothing there."
    kinds = {item.instance.is_neuron for item in comparison.estimates}
    if len(kinds) < 2 or workload.on_gpu or workload.rehearsed is not None:
        return
    if (workload.tensor_parallel or 1) * (workload.pipeline_parallel or 1) > 1:
        yield ("GPUs are split like NeuronCores (else: --gpu tensor_parallel=1, or windtunnel plan).")


def _uneven_words(estimates: Sequence[Estimate], workload: Workload) -> Iterator[str]:
    """That samples of a worker are no whole number, where, and a batch near it with which they are on all; not if
    another batch may get another split.
    """
    fitting = [item for item in estimates if item.fits]
    uneven = [item for item in fitting if each(item) != int(each(item))]
    if not uneven:
        return
    parts = "copies" if isinstance(workload, DescribedWorkload) else "workers"
    some = f" of {', '.join(map(label, uneven))}" if len(uneven) < len(fitting) else ""
    batch, then = "the batch", ""
    if len(batches := {round(item.global_batch) for item in fitting}) == 1:
        (size,) = batches
        near = batch_that_divides(
            size, math.lcm(*(round(item.global_batch / each(item)) for item in fitting))
        )
        batch = f"{size:,}"
        is_settled = not (isinstance(workload, DescribedWorkload) and workload.is_split_open)
        then = f"; {near:,} does" if is_settled and near <= 2 * size else ""
    yield f"Fractions are averages: {batch} does not divide over the {parts}{some}{then}."


def _chosen_words(estimates: Sequence[Estimate], workload: DescribedWorkload) -> Iterator[str]:
    """The choices that the description leaves open: the passes, and a split other than whole copies. Also
    passes other than stated.
    """
    chosen: dict[str, list[str]] = {}
    smaller, options = [], "--microbatch N"
    if workload.rehearsed is not None:
        yield from _as_rehearsed(estimates, workload)
    for item in estimates:
        job, training = workload.there(item.instance), item.training
        if training is None or not item.fits:
            continue
        words = []
        if job.is_split_open and (training.data_parallel < item.cores or training.zero != "none"):
            words.append(degrees(training) + sharing(training))
            options = "--tensor-parallel, --zero, --microbatch"
        if job.microbatch is None:
            words.append(f"passes of {fmt.plain(training.microbatch)}")
        elif training.microbatch != job.microbatch:
            smaller.append(f"{fmt.plain(training.microbatch)} on {label(item)}")
        if words:
            chosen.setdefault(", ".join(words), []).append(label(item))
    if smaller:
        yield f"Passes of {', '.join(smaller)}: those stated do not divide the batch of a copy."
    if chosen:
        otherwise = "" if workload.rehearsed is not None else f" (else: {options})"
        choices = "; ".join(f"{words} on {', '.join(names)}" for words, names in chosen.items())
        yield f"Fastest that fits: {choices}{otherwise}."


def _as_rehearsed(estimates: Sequence[Estimate], workload: DescribedWorkload) -> Iterator[str]:
    """The description that stands for a rehearsed model that cores share; outside the range, a hint for larger ones."""
    for item in estimates:
        training = item.training
        if training is not None and not workload.there(item.instance).is_split_open:
            yield (
                f"{label(item)}, from its description: {degrees(training)}{sharing(training)}, "
                f"passes of {fmt.plain(training.microbatch)} x {training.sequence_length:,} tokens."
            )
            if item.range_check.outside:
                yield "For a larger model: windtunnel compare JOB --architecture NAME."


def sharing_words(estimates: Sequence[Estimate], workload: Workload) -> Iterator[str]:
    """Warnings about what the answer assumes: the script uses only one core, or its cores do not share out the data."""
    rehearsed = workload.rehearsed
    if rehearsed is not None and rehearsed.unshared:
        yield (
            "no sampler divides the data, so each core may go over all of it: more cores then train no "
            "faster, and instances with more of them make as many steps as "
            f"{rehearsed.instance_type.removeprefix('ml.')}. Give the DataLoader a DistributedSampler. If "
            "the script divides its batches by xr.world_size(), this is right as it is."
        )
    if rehearsed is None or not rehearsed.as_one_process:
        return
    longer = ", ".join(
        f"{item.instance.core_count * item.instance_count:,} on {label(item)}" for item in estimates
    )
    yield (
        "one process runs, so one core works but all are billed. The answer assumes that all cores share "
        "its work, without an exchange of gradients (torch_distributed, or xmp.spawn's "
        f"NEURONCORE_NUM_DEVICES). As it is, the script takes up to this many times as long: {longer}."
    )


def each(item: Estimate) -> float:
    """Samples of a step on each worker, or on each copy of a model that workers share."""
    return item.samples_per_core if item.training is None else item.global_batch / item.training.data_parallel


def price_words(
    estimates: Sequence[Estimate],
    costs: Sequence[Cost | None],
    order: Sequence[int],
    found: Answer | None,
    book: PriceBook,
) -> Iterator[str]:
    """The offering, region and date of the prices, and where another way to buy the hour gives another answer.

    ``order``: positions of the estimates as they are shown.
    """
    if any(costs):
        shown = [estimates[index] for index in order], [costs[index] for index in order]
        yield offerings_words(*shown, book.as_of)
    yield from _bought_otherwise(estimates, found, book)


def offerings_words(
    estimates: Sequence[Estimate], costs: Sequence[Cost | None], on: date | None = None
) -> str:
    """Offering, region and date: those of the first instance first, the others with their instances' names.

    Prices that the user stated come after the book's, so that they have names too. A price that ended before the day
    ``on`` (None: today) says so.
    """
    day = on or datetime.now(timezone.utc).date()
    groups: dict[tuple[str, str], list[str]] = {}
    for item, cost in zip(estimates, costs, strict=True):
        if cost is not None:
            groups.setdefault(_of(cost.price, day), []).append(place(item))
    by_book = sorted(groups, key=lambda group: group[1] == _STATED)
    # What has no word for its offering has that of the first, so those of others come last.
    (offering, where), *rest = sorted(by_book, key=lambda group: group[0] != by_book[0][0])
    others = "".join(
        f"; {', '.join(dict.fromkeys(groups[own, there]))}: {'' if own == offering else f'{own} '}{there}"
        for own, there in rest
    )
    blocks = any(own == CAPACITY_BLOCK for own, _ in groups)
    days = " Blocks are sold by whole days, in advance; here only the time used counts." if blocks else ""
    return f"{PRICES}{offering} {where}{others}.{days}"


def _bought_otherwise(estimates: Sequence[Estimate], found: Answer | None, book: PriceBook) -> Iterator[str]:
    """Ways to buy the hour that make another instance the cheapest, or any, where the answer lacks prices."""
    now, different = None, machines(estimates)
    if found is not None and found.obstacle != "one instance":
        if found.obstacle not in (None, "outside"):
            return
        if found.decided.cheapest is not None:
            now = [*map(machine, different)].index(machine(estimates[found.decided.cheapest]))
    for _, other in by_offering(different, book):
        decided = other.decided
        rivals = sum(chance is not None for chance in decided.probabilities)
        if decided.cheapest is None or rivals < 2 or (now is not None and decided.costs[now] is None):
            continue
        best, cost = different[decided.cheapest], decided.costs[decided.cheapest]
        if cost is None or cost.price.status == "stated" or other.obstacle not in (None, "outside"):
            continue
        if now is None or best.instance != different[now].instance:
            sure = f", {probability(other.probability)}" if other.winner is not None else ""
            if other.obstacle == "outside" and (found is None or found.obstacle != "outside"):
                sure = ", outside the calibrated range"
            held = sorted({known.price.effective_from for known in decided.costs if known is not None})
            of = " to ".join(map(str, dict.fromkeys((held[0], held[-1]))))
            least = f"{machine(best)} costs least{cached(other)} ({fmt.dollars(cost.usd)})"
            days = ", though blocks are sold by whole days" if bought(cost.price) == CAPACITY_BLOCK else ""
            yield f"At {bought(cost.price)} prices of {of} {least}{sure}{days}."


def _of(price: Price, day: date) -> tuple[str, str]:
    if price.status == "stated":
        return bought(price), _STATED
    ended = ", ended" if price.until is not None and price.until < day else ""
    return bought(price), f"{price.region} {price.days}{ended}{how_known(price)}"


def how_known(price: Price) -> str:
    """The words behind a price that AWS has not printed: ``, derived``."""
    return f", {price.status}" if price.status in ("assumed", "derived") else ""
