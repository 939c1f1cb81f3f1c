"""A comparison as sections: time and cost, which is cheapest and how surely, and what would change that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import mean

from windtunnel.priceperf import (
    Comparison,
    Cost,
    Decision,
    DescribedWorkload,
    Estimate,
    FullScale,
    SensitivityRow,
    Workload,
)
from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.priceperf.money.decision import CLEAR, decide
from windtunnel.priceperf.money.sensitivity import SPOT_DISCOUNT
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Row, Section, Style
from windtunnel.reports.modelled import sections as modelled_part
from windtunnel.reports.modelled.labels import label, place

BATCH_RULES = {
    "global": "every instance gets the same global batch",
    "per_device": "every worker gets the same samples of a step, so global batches differ",
    "rehearsed": "Neuron instances keep the rehearsed samples a core, GPUs get the global batch of the largest",
}
_PARTS_BELOW = 0.005  # parts of a step under half a percent are left out of the table


def headline(comparison: Comparison, decisions: Sequence[Decision]) -> tuple[str, ...]:
    """The answer at each date, how probable it is, and where it would turn."""
    lines = [*modelled_part.not_modelled(comparison)]
    lines += [_unfit(item) for item in comparison.estimates if not item.fits]
    small = next((i for i in comparison.estimates if modelled_part.assumed_s(i) > i.train_s), None)
    if small is not None:
        lines.append(
            f"Mostly assumed: on {label(small)}, {fmt.modelled_seconds(modelled_part.assumed_s(small))} of "
            f"assumed fixed costs (set-up, compile, ...) outweigh {fmt.modelled_seconds(small.train_s)} of "
            "modelled steps. Who is cheapest hangs on them, and says nothing of a longer job."
        )
    if comparison.alternatives and decisions:  # else the settings are those of the description
        ran = (f"{item.precision.name} on {label(item)}" for item in comparison.estimates)
        lines.append(f"Products run as {', '.join(ran)}.")
    for decision in decisions:
        lines += _answer(comparison.estimates, decision)
    if decisions:
        lines += _otherwise(comparison, decisions[-1])
    else:
        lines.append("None of these instances has a price in the book: times only, and no answer.")
    return tuple(lines)


def sections(
    comparison: Comparison,
    decisions: Sequence[Decision],
    changes: Sequence[SensitivityRow],
    workload: Workload,
    full_scale: FullScale,
    price_notes: Sequence[str] = (),
) -> tuple[Section, ...]:
    """All sections of a comparison."""
    tokens = workload.tokens_per_sample or full_scale.sequence_length
    parts = [_table(comparison, full_scale, tokens)]
    parts += [_decision(comparison.estimates, decision) for decision in decisions]
    if comparison.alternatives and (verdicts := modelled_part.main_verdicts(comparison)):
        parts.append(modelled_part.verdict_section(verdicts))
    parts.append(_sensitivity(comparison, changes))
    return (*parts, _trust(comparison, workload), _assumptions(comparison, workload, price_notes))


def probability(value: float | None) -> str:
    """``86 %``; never 100 or 0, which no model can say."""
    if value is None:
        return "-"
    return "over 99 %" if value > 0.99 else "under 1 %" if value < 0.01 else f"{round(value * 100)} %"


def span(cost: Cost) -> str:
    """Both ends of a cost."""
    return fmt.interval(fmt.dollars(cost.low_usd), fmt.dollars(cost.high_usd))


def _unfit(item: Estimate) -> str:
    need = item.memory
    assert need is not None  # noqa: S101 - the caller chose those with a memory
    return (
        f"DOES NOT FIT: {label(item)} would need {fmt.gibibytes(need.needed_bytes)} of a worker's "
        f"{fmt.gibibytes(need.usable_bytes)} that tensors can use, "
        f"{fmt.percent(need.needed_bytes / need.usable_bytes - 1)} too much. Its figures are of a job that cannot run."
    )


def _answer(estimates: Sequence[Estimate], decision: Decision) -> list[str]:
    best = decision.cheapest
    cost = None if best is None else decision.costs[best]
    if best is None or cost is None:
        return [f"At prices of {decision.on} there is no answer: none of these both fits and has a price."]
    chance = decision.probability
    if chance == 1 and decision.break_evens[best] is None:
        return [
            f"At prices of {decision.on} {label(estimates[best])} costs {fmt.dollars(cost.usd)} ({span(cost)})."
        ]
    sure = "" if decision.clear else f", too close to call (below {CLEAR:.0%})".replace("%", " %")
    lines = [
        f"At prices of {decision.on} {label(estimates[best])} is modelled cheapest: {fmt.dollars(cost.usd)} "
        f"({span(cost)}), with probability {probability(chance)}{sure}."
    ]
    even = decision.break_evens[best]
    if even is not None:
        lines.append(
            f"It stays so up to {fmt.dollars(even.usd_per_hour)} an hour "
            f"({fmt.dollars(even.low_usd_per_hour)} to {fmt.dollars(even.high_usd_per_hour)}); its price is "
            f"{fmt.price(cost.price.usd_per_hour)}. Then {label(estimates[even.against])} costs as much."
        )
    return lines


def _otherwise(comparison: Comparison, decision: Decision) -> list[str]:
    """Settings of the GPU script with which the answer would be another."""
    lines = []
    for precision in dict.fromkeys(item.precision for item in comparison.alternatives):
        swapped = {item.name: item for item in comparison.alternatives if item.precision == precision}
        estimates = [
            swapped[item.name] if item.name in swapped and not item.instance.is_neuron else item
            for item in comparison.estimates
        ]
        costs = [
            None if cost is None else item.cost(cost.price)
            for item, cost in zip(estimates, decision.costs, strict=True)
        ]
        other = decide(decision.on, estimates, costs)
        if other.cheapest is None or (other.cheapest, other.clear) == (decision.cheapest, decision.clear):
            continue
        close = "" if other.clear else ", too close to call"
        lines.append(
            f"With the GPU script in {precision.name}, at prices of {decision.on}, "
            f"{label(estimates[other.cheapest])} is modelled cheapest with probability "
            f"{probability(other.probability)}{close}."
        )
    return lines


def _table(comparison: Comparison, full_scale: FullScale, tokens: int | None) -> Section:
    estimates = comparison.estimates

    def row(name: str, cell: Callable[[Estimate], str], style: Style = "normal") -> Row:
        return Row(name, tuple(cell(item) for item in estimates), style)

    rows = [
        row("Products run as", lambda e: e.precision.name),
        row("Workers", lambda e: f"{e.cores:,} {e.instance.core_name}{'s' if e.cores > 1 else ''}"),
        row("Global batch", lambda e: fmt.plain(e.global_batch)),
    ]
    rows += _split_rows(row) if all(e.training for e in estimates) else [
        row("Samples a worker", lambda e: fmt.plain(e.samples_per_core))
    ]  # fmt: skip
    rows += [
        row("One step", lambda e: fmt.modelled_seconds(e.step.total_s), "total"),
        row("interval", lambda e: modelled_part.span(e.step_interval_s, fmt.modelled_seconds), "detail"),
    ]
    for name in estimates[0].step.parts:
        if any(e.step.parts[name] >= _PARTS_BELOW * e.step.total_s for e in estimates):
            rows.append(row(name, _part(name), "detail"))
    rows.append(row("Samples/s", lambda e: fmt.significant(e.samples_per_s)))
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
        f"{modelled_part.size_words(full_scale)}; {BATCH_RULES[comparison.batch_rule]}",
        tuple(label(item) for item in estimates),
        tuple(rows),
    )


def _split_rows(row: Callable[[str, Callable[[Estimate], str]], Row]) -> list[Row]:
    """How the described model is split over the workers, and whether it fits."""

    def cell(text: Callable[[Estimate], str]) -> Callable[[Estimate], str]:
        return lambda item: text(item) if item.training is not None else ""

    def split(item: Estimate) -> str:
        training = item.training
        assert training is not None  # noqa: S101 - `cell` asks
        return f"{training.tensor_parallel} x {training.pipeline_parallel} x {training.data_parallel}"

    def passes(item: Estimate) -> str:
        training = item.training
        assert training is not None  # noqa: S101 - `cell` asks
        return f"{round(training.microbatches):,} x {fmt.plain(training.microbatch)}"

    def memory(item: Estimate) -> str:
        need = item.memory
        if need is None:
            return ""
        text = f"{fmt.gibibytes(need.needed_bytes)} of {fmt.gibibytes(need.usable_bytes)}"
        return text if need.fits else f"{text}: NO"

    return [
        row("Tensor x pipeline x data", cell(split)),
        row("Passes x sequences", cell(passes)),
        row("Recomputed", cell(lambda e: e.training.recompute if e.training else "")),
        row("Attention", cell(lambda e: e.training.attention if e.training else "")),
        row("Memory of a worker", memory),
    ]


def _part(name: str) -> Callable[[Estimate], str]:
    return lambda item: fmt.modelled_seconds(item.step.parts[name])


def _million_row(name: str, estimates: Sequence[Estimate], costs: Sequence[Cost | None], tokens: int) -> Row:
    cells = [
        "no price" if cost is None else fmt.dollars(item.cost_per_million(cost.price, tokens).usd)
        for item, cost in zip(estimates, costs, strict=True)
    ]
    return Row(name, tuple(cells), "detail")


def _decision(estimates: Sequence[Estimate], decision: Decision) -> Section:
    rows = []
    for index, item in enumerate(estimates):
        cost, even = decision.costs[index], decision.break_evens[index]
        if cost is None:
            rows.append(Row(label(item), ("no price", "", "-", "-", "")))
            continue
        turn = "-" if even is None else (
            f"{fmt.dollars(even.usd_per_hour)} "
            f"({fmt.significant(even.low_usd_per_hour)}-{fmt.significant(even.high_usd_per_hour)})"
        )  # fmt: skip
        cells = (
            fmt.dollars(cost.usd), span(cost),
            probability(decision.probabilities[index]) if item.fits else "does not fit",
            fmt.price(cost.price.usd_per_hour), turn,
        )  # fmt: skip
        rows.append(Row(label(item), cells, "total" if index == decision.cheapest else "normal"))
    return Section(
        "Who is cheapest",
        "modelled",
        f"at prices of {decision.on}",
        ("cost", "interval", "probability", "$ an hour", "break-even"),
        tuple(rows),
    )


def _sensitivity(comparison: Comparison, changes: Sequence[SensitivityRow]) -> Section:
    estimates = comparison.estimates
    alike = len({item.instance_count for item in estimates}) == 1
    names = [place(item) if alike else label(item) for item in estimates]
    rows, notes = [], []
    for change in changes:
        cells = ["-" if cost is None else fmt.dollars(cost.usd) for cost in change.costs]
        winner = "-" if change.cheapest is None else names[change.cheapest]
        text = change.change.replace("ml.", "")
        rows.append(Row(text, (*cells, winner, probability(change.probability))))
        notes += [f"{text}: not possible, {reason}." for reason in change.reasons]
    kept = "the global batch" if comparison.batch_rule == "global" else "the samples a worker"
    low, middle, high = (f"{part * 100:.0f}" for part in SPOT_DISCOUNT)
    notes += [
        f"instances: they keep {kept}.",
        f"spot: assumption, {middle} % off, {low} to {high} % in the interval; interruptions are not modelled.",
    ]
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
    notes = []
    for calibration in modelled_part.used_calibrations(comparison):
        if not isinstance(workload, DescribedWorkload):
            notes.append(modelled_part.calibration_note(calibration, workload))
            continue
        left = [abs(error) for error in calibration.family_errors]
        notes.append(
            f"{calibration.label}: constants fitted to {len(calibration.rows)} "
            f"published rows; each row predicted from the others is off by "
            f"{fmt.percent(calibration.mean_error)} on average, {fmt.percent(calibration.max_error)} at most; "
            f"without its family of models, {fmt.percent(mean(left))} and {fmt.percent(max(left))} "
            f"(windtunnel validate). The interval holds {fmt.percent(COVERAGE)} of such rows, all tuned "
            f"benchmarks: AWS's one published plain script took {calibration.outside_check:.1f} times what its "
            "counts say, which interval and probability need not contain. The form of the model was chosen knowing "
            "these errors, so expect somewhat larger ones."
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
        f"Batch: {BATCH_RULES[comparison.batch_rule]}.",
        *_chosen(workload, shown),
        *(f"{item.name}: {item.meaning}." for item in meanings),
        *modelled_part.host_notes(workload),
        *modelled_part.fixed_notes(shown[0]),
        "A million samples and tokens: of training steps alone, without fixed costs.",
        *price_notes,
        *modelled_part.price_notes(comparison),
    ]
    splits = {(i.training.tensor_parallel, i.training.zero) for i in shown if i.training is not None}
    if (
        len({item.instance.is_neuron for item in shown}) > 1
        and len(splits) == 1
        and next(iter(splits))[0] > 1
    ):
        notes.append(
            "GPUs got the same tensor parallelism as NeuronCores, which may not be what one would run there: "
            "see on_gpu (--gpu NAME=VALUE)."
        )
    missing = [
        label(i) for n, i in enumerate(shown) if all(costs[n] is None for _, costs in comparison.costs)
    ]
    if missing:
        notes.append(f"No price of {' and '.join(missing)} is in the book, so it has times and no cost.")
    return Section("Assumptions", "text", notes=tuple(notes))


def _chosen(workload: Workload, shown: Sequence[Estimate]) -> Iterator[str]:
    """What the description did not say, and what was assumed for it."""
    if not isinstance(workload, DescribedWorkload):
        return
    if workload.global_batch is None and workload.gradient_accumulation is None:
        yield (
            f"Global batch not given: {fmt.plain(max(item.global_batch for item in shown))}, the fewest sequences "
            "that give each worker its microbatch. Gradients are then reduced after few passes: state the real one."
        )
    for name, basis in (
        ("recompute", "what libraries do and what fits the memory"),
        ("attention", "what libraries do there"),
    ):
        if getattr(workload, name) == "auto":
            each = (f"{getattr(i.training, name)} on {label(i)}" for i in shown if i.training is not None)
            yield f"{name.capitalize()} not given: {', '.join(each)}, by {basis}."
