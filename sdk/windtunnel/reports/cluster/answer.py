"""The first screen of a Slurm job's report: the job on 1 to 64 real nodes, in 25 lines together with the bill above."""

from __future__ import annotations

from collections.abc import Sequence

from windtunnel.priceperf import Cost, ScalingRow, cost_usd
from windtunnel.priceperf.model.fixed_costs import FixedCost
from windtunnel.priceperf.model.intervals import COVERAGE
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.text import as_text
from windtunnel.reports.cluster import published
from windtunnel.reports.cluster.bill import Bill
from windtunnel.reports.cluster.modelled import Modelled
from windtunnel.reports.cluster.slurm_job import SlurmJob
from windtunnel.reports.modelled.answer import TITLE
from windtunnel.reports.modelled.fitted_notes import LINES, fitted
from windtunnel.reports.modelled.labels import outside_words

_LONG_H = 10_000
"""From so many hours on, times are in thousands of hours, never in years: eight columns share the screen."""


def answer_section(found: Modelled, job: SlurmJob, above: Sequence[str], change: str) -> Section:
    """Strong and weak scaling side by side; below them what is assumed, what AWS published, and what to change.

    ``above``: the lines above it in the frame.
    """
    costs = "EC2" if found.prices.ec2 is not None else "no price"
    table = Section(
        TITLE,
        "modelled",
        f"strong (left) and weak scaling on real {found.prices.instance_type}, {fmt.percent(COVERAGE)} intervals",
        ("samples/s", "job", costs, "weak: batch", "samples/s", "job", costs),
        tuple(_row(strong, weak) for strong, weak in zip(found.strong.rows, found.weak.rows, strict=True)),
        label_header="nodes",
        first=True,
    )
    notes = {
        _meaning(found): 2,
        published.sentence(found): 2,
        _size(found): 1,
        _prices(found, job): 2,
        _caveats(found): 2,
        f"To change: {change}" if change else "": 2,
    }
    used = as_text(Document("-", "", (), (table,))).count("\n") + sum(map(fmt.lines_of, above))
    return fitted(table, notes, LINES - used - 1)


def _row(strong: ScalingRow, weak: ScalingRow) -> Row:
    return Row(
        f"{strong.instances:,}",
        (
            *_cells(strong),
            "-" if weak.global_batch is None else fmt.plain(weak.global_batch),
            *_cells(weak),
        ),
    )


def _cells(row: ScalingRow) -> tuple[str, str, str]:
    if row.estimate is None:
        return "no", "", ""
    if not row.fits:
        return "no fit", "", ""
    return (
        fmt.significant(row.estimate.samples_per_s),
        _time(row.estimate.billable_s),
        "" if row.cost is None else _cost(row.cost),
    )


def _time(seconds: float) -> str:
    hours = fmt.rounded(seconds / 3600)
    return f"{fmt.short(hours)} h" if hours >= _LONG_H else fmt.modelled_seconds(seconds)


def _cost(cost: Cost) -> str:
    """A cost with its interval: ``$90 (60-140)``, ``$330 (120-1.2k)``, ``$1.7k (1.4-3.3k)``; shared units once."""
    size, sign = fmt.short_unit(cost.high_usd)
    low = fmt.significant(cost.low_usd / size) if fmt.short_unit(cost.low_usd)[1] else fmt.short(cost.low_usd)
    return f"${fmt.short(cost.usd)} ({low}-{fmt.significant(cost.high_usd / size)}{sign})"


def _meaning(found: Modelled) -> str:
    base, passes = found.strong.base, found.passes
    each = f"{fmt.plain(found.samples_of_pass)} sample{'' if found.samples_of_pass == 1 else 's'}"
    batch = "" if base is None or base.global_batch is None else f" of {base.global_batch:,.0f}"
    shared = base is not None and base.estimate is not None and base.estimate.training is not None
    keeper = "copy of the model" if shared else "worker"
    return (
        f"Strong: the job's batch{batch} stays; more nodes need fewer passes of {each}, or one smaller pass. Weak: "
        f"each {keeper} keeps its {passes:,} pass{'' if passes == 1 else 'es'} of {each}, so the batch grows."
    )


def _size(found: Modelled) -> str:
    size = found.full_scale
    epochs = f" x {size.epoch_count:,} epochs" if size.epoch_count > 1 else ""
    samples = fmt.many(size.train_samples, "sample")
    return f"The job: {samples}{epochs}, set-up, compiling. The real one: --full-scale-samples N."


def _caveats(found: Modelled) -> str:
    """Warnings on all rows, each once: no fit, the user's calibration, what lies outside the calibrated range."""
    items = found.estimates
    large = next((item.memory for item in items if item.memory is not None and not item.memory.fits), None)
    fit = ""
    if large is not None:
        needed, usable = fmt.gibibytes(large.needed_bytes), fmt.gibibytes(large.usable_bytes)
        fit = f"no fit: a core needs {needed} of {usable}; more parallelism may make it fit. "
    own = "YOUR CALIBRATION changes the steps. " if any(item.correction for item in items) else ""
    told = f"{fit}{own}"
    if any(item.range_check.outside for item in items):
        told += f"Outside the calibrated range, intervals widened: {outside_words(items)}."
    return told.strip()


def _prices(found: Modelled, job: SlurmJob) -> str:
    parts = []
    ec2, sagemaker = found.prices.ec2, found.prices.sagemaker
    if ec2 is not None:
        kind = ec2.offering.removeprefix("EC2 ")
        parts.append(
            f"EC2 {fmt.cents(ec2.usd_per_hour)} an hour ({kind}, {ec2.region}, {ec2.effective_from})"
        )
    if sagemaker is not None:
        beside = "" if ec2 is None else f", {sagemaker.usd_per_hour / ec2.usd_per_hour:.2f} times as much"
        parts.append(f"SageMaker {fmt.cents(sagemaker.usd_per_hour)}{beside}")
    text = f"{'; '.join(parts)}." if parts else ""
    idle = job.scaledown_idletime_s
    if ec2 is not None and idle and any(not node.static for node in job.own_nodes):
        waits = fmt.dollars(cost_usd(ec2.usd_per_hour, idle))
        text += f" Then a dynamic node on EC2 waits {idle / 60:g} min before it leaves: {waits} each."
    return text


def compiled_section(compiling: FixedCost, job: SlurmJob, bills: Sequence[Bill]) -> Section:
    """For a job under neuron_parallel_compile: what neuronx-cc would take on each of its nodes."""
    ends = fmt.modelled_span((compiling.low_s, compiling.high_s), compiling.seconds)
    cells = [f"{fmt.modelled_seconds(compiling.seconds)} ({ends})"]
    for bill in bills:
        for price in (bill.prices.ec2, bill.prices.sagemaker):
            if price is None:
                cells.append("no price")
                continue
            usd, least, most = (
                cost_usd(price.usd_per_hour, seconds, bill.nodes)
                for seconds in (compiling.seconds, compiling.low_s, compiling.high_s)
            )
            cells.append(f"{fmt.dollars(usd)} ({fmt.significant(least)}-{fmt.significant(most)})")
    return Section(
        TITLE,
        "modelled",
        "neuronx-cc on real nodes",
        ("each node compiles for", *(name for _ in bills for name in ("EC2", "SageMaker"))),
        (Row(f"{len(job.own):,}", tuple(cells)),),
        (
            "This job compiled its script's graphs with neuron_parallel_compile, and trained nothing: the report of "
            "the job that trains has its time and cost.",
            f"Compiling: {compiling.basis}. With a cache that all nodes share, one of them would do.",
        ),
        label_header="nodes",
        first=True,
    )


def nodes_section(job: SlurmJob) -> Section:
    """What each node counted here."""
    rows = [
        Row(
            node.node,
            (
                f"{node.cores:,}",
                f"{node.training_steps:,}",
                "" if node.median_step_seconds is None else fmt.seconds(node.median_step_seconds),
                fmt.seconds(node.collective_seconds),
                fmt.seconds(node.input_wait_seconds),
                "FAILED" if node.failed else "",
            ),
        )
        for node in job.counted
    ]
    return Section(
        "Nodes",
        "measured",
        "first simulated core of each; seconds of this machine",
        ("cores", "steps", "median", "collectives", "input", ""),
        tuple(rows),
        label_header="node",
    )
