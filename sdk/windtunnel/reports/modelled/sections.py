"""The modelled part as sections: time and cost, the verdicts, how far to trust them, what they assume."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from windtunnel.priceperf import (
    CALIBRATIONS,
    Calibration,
    Comparison,
    Cost,
    CountedWorkload,
    Estimate,
    FullScale,
    PriceBook,
    Workload,
)
from windtunnel.priceperf.calibration.calibrations import VERSION_SPREAD
from windtunnel.priceperf.calibration.measured_scripts import Known, errors_of_scripts
from windtunnel.priceperf.model.engines import HOST_S
from windtunnel.priceperf.model.host_tracing import HOST_SPEED
from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.priceperf.model.step_time import StepTime
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Row, Section, Style
from windtunnel.reports.modelled.cheapest import cheapest_sections
from windtunnel.reports.modelled.labels import priced, rule_words
from windtunnel.reports.modelled.step_rows import part_rows, row_of, step_rows


def sections(
    comparison: Comparison, workload: Workload, full_scale: FullScale | None, book: PriceBook
) -> tuple[Section, ...]:
    """All sections of what is modelled."""
    return (
        _time_and_cost(comparison, workload, full_scale),
        *cheapest_sections(comparison, book),
        _trust(comparison, workload),
        _assumptions(comparison, workload),
    )


def _time_and_cost(comparison: Comparison, workload: Workload, full_scale: FullScale | None) -> Section:
    estimates = comparison.estimates
    row = partial(row_of, estimates)
    described = all(item.training is not None for item in estimates)
    rows = [
        row("Matmuls run as", lambda e: e.precision.name),
        *step_rows(estimates),
        *(part_rows(estimates) if described else _counted_parts(estimates)),
        row("Samples/s", lambda e: fmt.significant(e.samples_per_s)),
        row("Training steps", lambda e: f"{e.steps:,}"),
        row("Time in steps", lambda e: fmt.modelled_seconds(e.train_s), "total"),
        row("interval", lambda e: fmt.modelled_span(e.train_interval_s, e.train_s), "detail"),
        *billable_rows(estimates),
        row("Not billed: start", lambda e: fmt.modelled_seconds(e.fixed[0].seconds)),
    ]
    for on, costs in comparison.costs:
        rows += cost_rows(f"Cost on {on}", costs)
    return Section(
        "Modelled",
        "modelled",
        _job_text(workload, full_scale),
        tuple(f"{_short(item.instance.name)}{f' x {item.instance_count}' if item.instance_count > 1 else ''}"
              for item in estimates),
        tuple(rows),
    )  # fmt: skip


def _counted_parts(estimates: Sequence[Estimate]) -> list[Row]:
    parts: dict[str, Callable[[StepTime], float]] = {
        "compute": lambda step: step.compute_s,
        "memory": lambda step: step.memory_s,
        "of these at the same time": lambda step: step.overlapped_s,
        "collectives": lambda step: step.exposed_collective_s,
        "host": lambda step: step.host_s,
    }
    if any(item.step.input_s for item in estimates):
        parts["waiting for input"] = lambda step: step.input_s
    return [
        Row(name, tuple(fmt.modelled_seconds(seconds(item.step)) for item in estimates), "detail")
        for name, seconds in parts.items()
    ]


def billable_rows(estimates: Sequence[Estimate]) -> list[Row]:
    """The fixed costs that are billed, then the billable time with its interval."""
    fixed = [
        Row(costs[0].name, tuple(fmt.modelled_seconds(cost.seconds) for cost in costs), "detail")
        for costs in zip(*(item.fixed for item in estimates), strict=True)
        if costs[0].billed
    ]
    billable = tuple(fmt.modelled_seconds(item.billable_s) for item in estimates)
    ends = tuple(fmt.modelled_span(item.billable_interval_s, item.billable_s) for item in estimates)
    return [
        Row("Fixed, billed", (), "group"),
        *fixed,
        Row("Billable", billable, "total"),
        Row("interval", ends, "detail"),
    ]


def cost_line(cost: Cost) -> str:
    """A modelled cost with interval, instance and date of the price, in a line."""
    amount = fmt.dollars_within(cost.usd, cost.low_usd, cost.high_usd)
    where = f"{cost.price.instance_type} at its price of {cost.price.effective_from}"
    return f"{amount}, modelled for {where}"


def cost_rows(title: str, costs: Sequence[Cost | None]) -> list[Row]:
    def row(label: str, cell: Callable[[Cost], str], style: Style) -> Row:
        return Row(label, tuple("no price" if cost is None else cell(cost) for cost in costs), style)

    return [
        row(title, lambda cost: fmt.dollars(cost.usd), "total"),
        row("interval", lambda cost: fmt.dollar_span(cost.low_usd, cost.high_usd), "detail"),
        row("price of an hour", lambda cost: fmt.price(cost.price.usd_per_hour), "detail"),
        row("valid from", lambda cost: str(cost.price.effective_from), "detail"),
        row("status", lambda cost: cost.price.status, "detail"),
    ]


def _trust(comparison: Comparison, workload: Workload) -> Section:
    notes = (*calibration_notes(comparison, workload), *outside_notes(comparison.estimates))
    return Section("How far to trust it", "text", notes=notes)


def used_calibrations(comparison: Comparison) -> tuple[Calibration, ...]:
    """The calibrations behind the estimates, each once."""
    return tuple({item.calibration.key: item.calibration for item in comparison.estimates}.values())


def unseen_error(comparison: Comparison, calibration: Calibration) -> float:
    """The mean error on software that the model never saw; the larger one, if one node and many nodes are compared."""
    counts = {item.instance_count for item in comparison.estimates if item.calibration.key == calibration.key}
    return max(map(calibration.unseen_error, counts))


def outside_notes(estimates: Sequence[Estimate]) -> list[str]:
    """In words, what lies outside the calibrated range or cannot be checked; the same reasons share a note."""
    outside: dict[tuple[str, ...], list[str]] = {}
    for item in estimates:
        if item.range_check.outside:
            outside.setdefault(item.range_check.outside, []).append(_short(item.name))
    notes = [
        f"OUTSIDE THE CALIBRATED RANGE on {' and '.join(names)}: {'; '.join(reasons)}. "
        f"{'Its interval is' if len(names) == 1 else 'Their intervals are'} widened."
        for reasons, names in ((why, list(dict.fromkeys(each))) for why, each in outside.items())
    ]
    unknown = dict.fromkeys(name for item in estimates for name in item.range_check.unknown)
    if unknown:
        notes.append(
            f"Not checked against the calibrated range, because not known here: {', '.join(unknown)}."
        )
    return notes


def calibration_notes(comparison: Comparison, workload: Workload) -> list[str]:
    """How far off the model was, by each calibration behind the estimates."""
    return [
        _calibration_note(calibration, workload, unseen_error(comparison, calibration))
        for calibration in used_calibrations(comparison)
    ]


def _calibration_note(calibration: Calibration, workload: Workload, unseen: float) -> str:
    """From descriptions, or from counts with and without the host's time. ``unseen``: `unseen_error`."""
    if isinstance(workload, CountedWorkload):
        return _of_counts(calibration, workload, unseen)
    return (
        f"{calibration.label}: constants fitted to {len(calibration.rows)} published rows; each row "
        f"predicted from the others is off by {fmt.percent(calibration.mean_error)} on average, "
        f"{fmt.percent(calibration.max_error)} at most; without its family of models, "
        f"{fmt.percent(calibration.unseen_family_error)} and "
        f"{fmt.percent(max(map(abs, calibration.family_errors)))} (windtunnel validate). For software "
        f"that the constants are not fitted to, it is off by {fmt.percent(unseen)} on average; "
        f"{fmt.percent(COVERAGE)} of such software lie inside the interval. {_of_scripts(calibration)}"
    )


def _of_scripts(calibration: Calibration) -> str:
    """The error on plain scripts, which are slower than the software that the constants are fitted to."""
    scripts = errors_of_scripts(calibration.key)
    if scripts is not None:
        return (
            f"{scripts_note(scripts, 'scripts')}, if they are named as such (software 'PyTorch script'). "
            "If no software is named, the slow end of the interval includes their host and optimizer."
        )
    return (
        f"AWS's one published plain script took {calibration.outside_check:.1f} times what its counts "
        "say. Interval and probability need not contain that."
    )


def _of_counts(calibration: Calibration, workload: CountedWorkload, unseen: float) -> str:
    counted = [abs(error) for error in calibration.counts_errors]
    others = "" if calibration.counts_rows else "of A100s "
    text = (
        f"{calibration.label}: constants fitted to {len(calibration.rows)} published rows; each row predicted from the "
        f"others by its description is off by {fmt.percent(calibration.mean_error)} on average, "
        f"{fmt.percent(calibration.max_error)} at most, published throughputs of software that the model never saw by "
        f"{fmt.percent(unseen)} on average (windtunnel validate). From what a rehearsal counts, "
        f"the {len(counted)} rows {others}that are like a rehearsal are off by "
        f"{fmt.percent(sum(counted) / len(counted))} on average, {fmt.percent(max(counted))} at most; the "
        f"interval holds {fmt.percent(COVERAGE)} of these"
    )
    ratio = calibration.outside_check
    if calibration.is_neuron and workload.step.host is not None:
        text += (
            ", and the speed of another host's processor. AWS's own BERT base job, a plain script, took "
            f"{calibration.traced_check:.2f} times what this model says with the host's tracing, "
            f"{ratio:.1f} times without it (windtunnel report --published)"
        )
    elif ratio > 1.1:
        text += (
            f"; its slow end is set by AWS's own BERT base job, a plain script, "
            f"which took {ratio:.1f} times what this model says"
        )
    if (scripts := errors_of_scripts(calibration.key, workload.known_as)) is not None:
        text += f". From counts, {scripts_note(scripts, workload.known_as)}"
    if not workload.is_transformer:
        longer = "" if calibration.is_neuron else ", and a step takes longer"
        text += (
            ". Constants and published rows are of transformers, which this model is not: the interval is wider"
            f"{longer}, by what such models that were rehearsed and measured on an H100 differ"
        )
        if calibration.is_neuron and workload.convolves:
            text += (
                ". Convolutions are modelled as slow as in the one network whose step on a NeuronCore "
                "was published. They may be as fast as other products: the fast end of the interval"
            )
    text += ". The form of the model was chosen when these errors were known, so expect somewhat larger ones"
    if calibration.is_neuron:
        text += f". The same job differs by ±{fmt.percent(VERSION_SPREAD)} between Neuron versions"
    return f"{text}."


KNOWN_MODELS: Mapping[Known, str] = {
    "scripts": "models",
    "rehearsed": "transformers",
    "others": "models that are no transformers",
}


def scripts_note(scripts: Mapping[str, float], of: Known) -> str:
    """How far the model is off on the plain scripts that the project measured."""
    return (
        f"{scripts['rows']:.0f} runs of plain scripts (eager PyTorch, Hugging Face's Trainer; "
        f"{scripts['models']:.0f} {KNOWN_MODELS[of]}) that the project measured on one GPU are off by "
        f"{fmt.percent(scripts['mean_error'])} on average, {fmt.percent(scripts['max_error'])} at most"
    )


def _assumptions(comparison: Comparison, workload: Workload) -> Section:
    shown = comparison.estimates
    neuron = [item for item in shown if item.instance.is_neuron]
    notes = [
        f"Batch: {rule_words(comparison, workload)}. All cores of an instance work.",
        *(f"Precision: {item.precision.meaning}." for item in neuron[:1]),
        (
            "Step: compute and memory time are added, except for the part that overlaps (on trn1 "
            f"{fmt.percent(CALIBRATIONS['trn1'].constants.overlap)} of the shorter, on GPUs nothing); of the "
            "collectives only the part that nothing hides counts (on trn1 nothing hides them, on an A100 "
            f"{fmt.percent(CALIBRATIONS['a100'].constants.hidden_collectives)} of the step). The host takes "
            f"{HOST_S * 1000.0:g} ms that nothing hides."
        ),
        *host_notes(workload),
        f"{_basis(workload)} {_input_words(shown)}Steps without optimizer count as evaluation.",
        *fixed_notes(shown),
    ]
    notes += price_notes(comparison)
    return Section("Assumptions", "text", notes=tuple(notes))


def _input_words(shown: Sequence[Estimate]) -> str:
    """Says that waiting for input is not modelled; empty where the loader's rate was stated, as then it is."""
    return "" if any(item.loading_s for item in shown) else "Waiting for input is not modelled. "


def _basis(workload: Workload) -> str:
    if isinstance(workload, CountedWorkload):
        return (
            "Bytes, attention and sample length as rehearsed. GPUs run the same script, XLA's parts included."
        )
    return (
        "Cores share one copy of the model, so the step is modelled from its description, which the "
        "rehearsal found: dimensions, batches, split. Attention and recomputation are assumed: what "
        "libraries do, and what fits the memory."
    )


def fixed_notes(estimates: Sequence[Estimate]) -> tuple[str, ...]:
    """What each fixed cost is based on, each note once; without evaluation, which is modelled as steps are."""
    fixed = [cost for each in zip(*(item.fixed for item in estimates), strict=True) for cost in each]
    told = (f"{cost.name.capitalize()}: {cost.basis}." for cost in fixed if cost.name != "evaluation")
    return tuple(dict.fromkeys(told))


def price_notes(comparison: Comparison) -> list[str]:
    """Each price with its date, region, status and source."""
    prices = dict.fromkeys(cost.price for _, costs in comparison.costs for cost in costs if cost is not None)
    return [
        f"Price of {priced(item.instance_type)} from {item.effective_from} "
        f"({item.region}, {item.status}): {item.source}."
        for item in prices
    ]


def host_notes(workload: Workload) -> tuple[str, ...]:
    """What the host's tracing of a step adds on trn1, in words; empty where it was not measured."""
    host = workload.step.host if isinstance(workload, CountedWorkload) else None
    if host is None:
        return ()
    reads = (
        (
            f" In {fmt.percent(host.reads)} of the steps the script waited for the device, so the host cannot "
            "run ahead."
        )
        if host.reads
        else ""
    )
    source = "its time here" if host.is_measured else "its operations, as each step here compiled"
    return (
        f"Tracing a step takes {fmt.seconds(host.trace_s)} of a trn1 host's processor, modelled from {source}. "
        f"The part that the device does not hide counts. Assumed: {HOST_SPEED.low:g} to {HOST_SPEED.high:g} times "
        f"that.{reads}",
    )


def _job_text(workload: Workload, full_scale: FullScale | None) -> str:
    rehearsed = workload.rehearsed
    if full_scale is None and rehearsed is not None:
        if isinstance(rehearsed.found, FullScale):
            return f"as the script has it: {size_words(rehearsed.found)}"
        return f"exactly what was rehearsed: {fmt.many(rehearsed.samples, 'sample')}"
    return f"the real job: {stated_size(workload, full_scale)}"


def stated_size(workload: Workload, stated: FullScale | None) -> str:
    """The size of the real job, with a word where the evaluation is that of a sample which ran whole."""
    words, rehearsed = size_words(size := workload.sized(stated)), workload.rehearsed
    if stated is None or stated.evaluation_samples is not None or rehearsed is None:
        return words
    return f"{words}, as rehearsed" if size.evaluated and rehearsed.found is None else words


def size_words(full_scale: FullScale) -> str:
    """The size of a job, as ``3,600,000 samples x 2 epochs``."""
    text = f"{fmt.many(full_scale.train_samples, 'sample')} x {fmt.many(full_scale.epoch_count, 'epoch')}"
    if full_scale.evaluated:
        text += f", {full_scale.evaluated:,} evaluated an epoch"
        text += " by each worker" if full_scale.evaluation_split is False else ""
    return text


def _short(name: str) -> str:
    return name.removeprefix("ml.")
