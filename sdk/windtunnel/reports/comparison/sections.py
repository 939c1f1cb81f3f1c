"""A comparison as sections: time and cost, which is cheapest and how surely, and what would change that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from windtunnel.priceperf import (
    Comparison,
    Cost,
    DescribedWorkload,
    Estimate,
    FullScale,
    PriceBook,
    SensitivityRow,
    Workload,
    answers,
)
from windtunnel.priceperf.calibration.published_rows import is_fitted
from windtunnel.priceperf.calibration.software import usual_speed
from windtunnel.priceperf.model.plain_script import is_compiled, is_plain
from windtunnel.priceperf.money.sensitivity import SPOT_DISCOUNT
from windtunnel.priceperf.workload.cluster import no_cluster
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Row, Section
from windtunnel.reports.modelled import sections as modelled_part
from windtunnel.reports.modelled.cheapest import cheapest_sections, probability
from windtunnel.reports.modelled.labels import label, place, rule_words
from windtunnel.reports.modelled.step_rows import part_rows, row_of, step_rows


def sections(
    comparison: Comparison,
    changes: Sequence[SensitivityRow],
    workload: Workload,
    full_scale: FullScale,
    book: PriceBook,
    price_notes: Sequence[str] = (),
) -> tuple[Section, ...]:
    """All sections of a comparison."""
    tokens = workload.tokens_per_sample or full_scale.sequence_length
    parts = [
        _table(comparison, workload, full_scale, tokens),
        *cheapest_sections(comparison, book),
        _sensitivity(comparison, changes),
    ]
    return (*parts, _trust(comparison, workload), _assumptions(comparison, workload, price_notes))


def _table(comparison: Comparison, workload: Workload, full_scale: FullScale, tokens: int | None) -> Section:
    estimates = comparison.estimates
    row = partial(row_of, estimates)
    rows = [
        row("Products run as", lambda e: e.precision.name),
        *step_rows(estimates),
        *part_rows(estimates),
        row("Samples/s", lambda e: fmt.significant(e.samples_per_s)),
    ]
    if tokens:
        rows.append(row("Tokens/s", lambda e: fmt.significant(e.samples_per_s * tokens)))
    rows += [
        row("Training steps", lambda e: f"{e.steps:,}"),
        row("Time in steps", lambda e: fmt.modelled_seconds(e.train_s), "total"),
        *modelled_part.billable_rows(estimates),
    ]
    for on, costs in comparison.costs:
        rows += modelled_part.cost_rows(f"Cost on {on}", costs)
        rows.append(_million_row("a million samples", estimates, costs, 1))
        if tokens:
            rows.append(_million_row("a million tokens", estimates, costs, tokens))
    return Section(
        "Modelled",
        "modelled",
        f"{modelled_part.size_words(full_scale)}; batch {rule_words(comparison, workload)}",
        tuple(label(item) for item in estimates),
        tuple(rows),
    )


def _million_row(name: str, estimates: Sequence[Estimate], costs: Sequence[Cost | None], tokens: int) -> Row:
    cells = [
        "no price" if cost is None else fmt.dollars(item.cost_per_million(cost.price, tokens).usd)
        for item, cost in zip(estimates, costs, strict=True)
    ]
    return Row(name, tuple(cells), "detail")


def _sensitivity(comparison: Comparison, changes: Sequence[SensitivityRow]) -> Section:
    estimates = comparison.estimates
    alike = len({item.instance_count for item in estimates}) == 1
    names = [place(item) if alike else label(item) for item in estimates]
    places = {item.name: place(item) for item in estimates}
    rows, notes = [], []
    for change in changes:
        cells = [
            "-" if cost is None else fmt.dollars(cost.usd) if fits else "does not fit"
            for cost, fits in zip(change.costs, change.fits, strict=True)
        ]
        winner = "-" if change.cheapest is None else names[change.cheapest]
        what, _, how = change.change.partition(" ")
        text = f"{places.get(what, what)} {how}"
        rows.append(Row(text, (*cells, winner, probability(change.probability))))
        notes += [f"{text}: not possible, {reason}." for reason in change.reasons]
    if not comparison.is_known:
        what = "the host's part of a step" if comparison.size_known else "the size of the whole job"
        notes.append(f"None of this names a winner: {what} is not known.")
    elif not all(item.range_check.inside for item in estimates):
        notes.append("None of this names a winner: some of it lies outside the calibrated range.")
    elif any(item.too_small for item in estimates):
        notes.append("None of this names a winner: assumed set-up and transfers exceed some of the steps.")
    elif any(found.without_compile for found in answers(comparison)[-1:]):
        notes.append("Compile time is in these costs; the answer follows from the costs without it.")
    alone = dict.fromkeys(item.instance for item in estimates if item.instance.trains_alone)
    notes += [f"instances x 2: NOT ON AWS, {no_cluster(instance)}" for instance in alone]
    kept = "the global batch" if comparison.one_batch else "the samples a worker"
    low, middle, high = (f"{part * 100:.0f}" for part in SPOT_DISCOUNT)
    notes.append(f"instances: they keep {kept}.")
    if any(change.assumed for change in changes):
        notes.append(
            f"spot: assumption, {middle} % off, {low} to {high} % in the interval; interruptions are not modelled."
        )
    return Section(
        "If one thing were different",
        "modelled",
        "at the newest prices compared",
        (*names, "cheapest", "probability"),
        tuple(rows),
        tuple(notes),
        label_header="changed",
    )


def _trust(comparison: Comparison, workload: Workload) -> Section:
    notes = modelled_part.calibration_notes(comparison, workload)
    if isinstance(workload, DescribedWorkload) and workload.lora is not None:
        notes.append(
            f"{workload.lora.words}: all these rows train all weights. What adapters add and frozen "
            "weights save is counted as in PEFT, and nothing is fitted to it. The interval is wider, by "
            "how far published runs on A100s and H100s are from that; for trn1 none is published. In "
            "small models adapters may cost more than frozen weights save, so a step may take longer "
            "than with all weights trained."
        )
    notes += modelled_part.outside_notes(comparison.estimates)
    notes.append(
        "Probability: the logarithm of each cost is normal on either side of its middle, a tenth beyond each "
        "end of the interval; errors of two instances are independent, but the time that the script prepares is "
        "the same on all. Instances of one family share their "
        "errors, so between these the answer is surer than it says."
    )
    return Section("How far to trust it", "text", notes=tuple(notes))


def _assumptions(comparison: Comparison, workload: Workload, price_notes: Sequence[str]) -> Section:
    shown = comparison.estimates
    meanings = dict.fromkeys(item.precision for item in shown)
    notes = [
        f"Batch: {rule_words(comparison, workload)}.",
        *_chosen(workload, comparison),
        *_by_software(workload, shown),
        *(f"{item.name}: {item.meaning}." for item in meanings),
        *modelled_part.host_notes(workload),
        *modelled_part.fixed_notes(shown),
        "A million samples and tokens: training steps only, without fixed costs.",
        *price_notes,
        *modelled_part.price_notes(comparison),
    ]
    splits = {(i.training.tensor_parallel, i.training.zero) for i in shown if i.training is not None}
    if (
        workload.rehearsed is None
        and len({item.instance.is_neuron for item in shown}) > 1
        and len(splits) == 1
        and next(iter(splits))[0] > 1
    ):
        notes.append(
            "GPUs have the same tensor parallelism as NeuronCores, which may not be usual there: see "
            "on_gpu (--gpu NAME=VALUE)."
        )
    missing = [
        label(i) for n, i in enumerate(shown) if all(costs[n] is None for _, costs in comparison.costs)
    ]
    if missing:
        has = "it has" if len(missing) == 1 else "they have"
        notes.append(f"No price of {' and '.join(missing)} is in the book, so {has} times and no cost.")
    return Section("Assumptions", "text", notes=tuple(notes))


def _chosen(workload: Workload, comparison: Comparison) -> Iterator[str]:
    """What neither the description nor the batch rule states, and what was assumed instead."""
    if not isinstance(workload, DescribedWorkload):
        return
    shown, stated = comparison.estimates, not isinstance(comparison.batch_rule, str)
    if workload.global_batch is None and workload.gradient_accumulation is None and not stated:
        each = [f"{fmt.plain(item.global_batch)} on {label(item)}" for item in shown]
        yield (
            f"Global batch not given: {', '.join(each)}, the fewest sequences that give each worker its "
            "microbatch. Gradients are then reduced after few passes: state the real batch."
        )
    for name, basis in (
        ("recompute", "what libraries do and what fits the memory"),
        ("attention", "what libraries do there"),
    ):
        if getattr(workload, name) == "auto":
            each = [f"{getattr(i.training, name)} on {label(i)}" for i in shown if i.training is not None]
            yield f"{name.capitalize()} not given: {', '.join(each)}, by {basis}."


def _by_software(workload: Workload, shown: Sequence[Estimate]) -> Iterator[str]:
    """What naming the software has changed, and what is assumed where no software is named."""
    unnamed = []
    for item in shown:
        if not isinstance(workload, DescribedWorkload):
            if not item.instance.is_neuron:
                yield (
                    f"On {label(item)} the rehearsed script is modelled as a plain one: its kernels are "
                    "not fused."
                )
        elif (software := workload.there(item.instance).software) is None:
            usual = usual_speed(None, item.instance, item.instance_count)
            unnamed.append(f"{usual:.2f} on {label(item)}")
        else:
            yield f"Trained by {software} on {label(item)}: {_of_software(software, item)}."
    if unnamed:
        yield (
            f"Software not named: the modelled speed times {', '.join(unnamed)}, the usual speed of "
            "software that no constant is fitted to."
        )


def _of_software(software: str, item: Estimate) -> str:
    speed, known = item.software_speed, is_fitted(software, item.calibration.key)
    if is_plain(software) and speed is None:
        return (
            "a plain script; the project has measured none there, so the interval is that of usual software"
        )
    if speed is not None:
        whose = "the scripts that the project measured" if is_plain(software) else "its published rows"
        if is_compiled(software):
            whose = "runs with torch.compile, held against the same without (at most tuned software),"
        return f"{speed:.2f} times the modelled speed, as {whose} have it"
    rows = f"its rows on {item.calibration.label}" if item.instance.from_specification else "its rows"
    if item.range_check.by_known_software:
        return f"constants are fitted to {rows}, so the interval is that of left-out families"
    if known:
        return f"constants are fitted to {rows}; the interval is that of all software, which is the narrower here"
    return "no published row of it is like this, so the usual speed of software is used"
