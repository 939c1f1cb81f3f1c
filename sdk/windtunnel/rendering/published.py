"""AWS's table of trn1 against p4d as a document and as data."""

from __future__ import annotations

from typing import Any

from windtunnel.priceperf import PublishedComparison
from windtunnel.priceperf.published import SOURCE, PublishedJob
from windtunnel.rendering import format as fmt
from windtunnel.rendering.document import Document, Row, Section


def document(table: PublishedComparison) -> Document:
    """The published table, its arithmetic, the later price, and the model held against it."""
    return Document(
        "AWS's published price/performance: BERT base on Amazon Polarity",
        SOURCE,
        (
            f"trn1 saves {table.saving_printed_percent:.1f} % at the prices of 2022, "
            f"{table.saving_later_percent:.1f} % with p4d's price of {table.later_price.effective_from:%Y}.",
        ),
        (_table(table), _ratios(table), _checks(table)),
    )


def data(table: PublishedComparison) -> dict[str, Any]:
    """The same figures for machines."""
    return {
        "schema": "windtunnel.published/1",
        "source": SOURCE,
        "rows": [_row_data(job) for job in (table.trn1, table.p4d)],
        "iterations_faster_percent": round(table.faster_percent, 3),
        "billable_shorter_percent": round(table.shorter_percent, 3),
        "saving_percent": {
            "published_costs": round(table.saving_printed_percent, 3),
            "recomputed": round(table.saving_recomputed_percent, 3),
            "with_later_p4d_price": round(table.saving_later_percent, 3),
        },
        "later_p4d_price": {
            "usd_per_hour": table.later_price.usd_per_hour,
            "effective_from": table.later_price.effective_from.isoformat(),
            "status": table.later_price.status,
            "region": table.later_price.region,
            "source": table.later_price.source,
            "cost_usd": round(table.p4d_later_usd, 3),
        },
        "model_check": [
            {
                "instance_type": check.instance_type,
                "fp32_matmuls_run_as": check.precision.fp32_matmul,
                "modelled_iterations_per_second": round(check.predicted, 3),
                "published_iterations_per_second": check.published,
                "error_percent": round(check.error_percent, 1),
            }
            for check in table.checks
        ],
    }


def _row_data(job: PublishedJob) -> dict[str, Any]:
    return {
        "instance_type": job.instance_type,
        "usd_per_hour": job.usd_per_hour,
        "iterations_per_second": job.iterations_per_second,
        "validation_accuracy": job.validation_accuracy,
        "billable_seconds": job.billable_seconds,
        "published_cost_usd": job.cost_usd,
        "recomputed_cost_usd": round(job.recomputed_usd, 3),
        "agrees_to_printed_precision": job.agrees,
        "published_above_recomputed_percent": round(job.off_percent, 3),
        "outside_steps_percent": round(job.outside_steps * 100, 1),
    }


def _table(table: PublishedComparison) -> Section:
    jobs = (table.trn1, table.p4d)
    rows = (
        Row("Price of an hour", tuple(f"${job.usd_per_hour:,.3f}".rstrip("0") for job in jobs)),
        Row("Iterations/s", tuple(f"{job.iterations_per_second:.2f}" for job in jobs)),
        Row("Validation accuracy", tuple(f"{job.validation_accuracy:.3f}" for job in jobs)),
        Row("Billable", tuple(f"{job.billable_seconds:,} s" for job in jobs)),
        Row("Cost, as printed", tuple(f"${job.cost_usd:.{job.decimals}f}" for job in jobs), "total"),
        Row("Cost, recomputed", tuple(f"${job.recomputed_usd:.3f}" for job in jobs), "total"),
        Row("Printed cost", tuple(_verdict(job) for job in jobs)),
        Row("Not training steps", tuple(f"{job.outside_steps * 100:.0f} % of billable" for job in jobs)),
    )
    note = (
        "Recomputed: price x billable seconds / 3600. Time outside steps: one epoch of 3,600,000 samples "
        "in batches of 256 at the printed iterations/s."
    )
    return Section(
        "Published", "published", "prices of 2022-10-10, us-east-1",
        tuple(job.instance_type.removeprefix("ml.") for job in jobs), rows, (note,),
    )  # fmt: skip


def _verdict(job: PublishedJob) -> str:
    if job.agrees:
        return "agrees as printed"
    return f"OFF: {abs(job.off_percent):.2f} % {'high' if job.off_percent > 0 else 'low'}"


def _ratios(table: PublishedComparison) -> Section:
    later = table.later_price
    rows = (
        Row("Iterations/s", (f"{table.faster_percent:+.0f} %", "trn1 above p4d")),
        Row("Billable seconds", (f"{-table.shorter_percent:+.1f} %", "trn1 below p4d")),
        Row("Saving, printed costs", (f"{table.saving_printed_percent:.1f} %", "prices of 2022")),
        Row("Saving, recomputed", (f"{table.saving_recomputed_percent:.1f} %", "prices of 2022")),
        Row(
            "Saving, later price",
            (
                f"{table.saving_later_percent:.1f} %",
                f"p4d ${later.usd_per_hour:.4f}: ${table.p4d_later_usd:.3f}",
            ),
            "total",
        ),
    )
    note = (
        f"p4d's later price: {later.status}, {later.region}, from {later.effective_from}; {later.source}. "
        "trn1's price is that of us-east-1 and did not change."
    )
    return Section("What follows", "published", columns=("", "basis"), rows=rows, notes=(note,))


def _checks(table: PublishedComparison) -> Section:
    rows = tuple(
        Row(
            f"{check.instance_type.removeprefix('ml.')}, {check.precision.name}",
            (
                f"{fmt.significant(check.predicted)} it/s",
                f"{check.published:.2f} it/s",
                f"{check.error_percent:+.0f} %",
            ),
        )
        for check in table.checks
    )
    notes = (
        "BERT base counted from its dimensions (batch 8 a core, 256 in all, sequence 128); "
        "this job took no part in the calibration.",
        "The published p4d figure is near full fp32, PyTorch's default since 1.12, and far from TF32, "
        "which is one line in the script: the published saving is one over a p4d in fp32.",
        "On trn1 the plain script was slower than the tuned benchmarks of the calibration; "
        "the slow end of every trn1 interval holds that gap. Part of it is the software: BERT-Large on one "
        "instance is published with 2,846 sequences/s for its slowest Neuron version and 3,614 for the median, "
        "and this job is of the launch. What else it is, no published figure tells: a plain script traces its "
        "graph in Python at each step, and reads its input and its loss between steps.",
    )
    return Section(
        "This model, held against it",
        "modelled",
        columns=("modelled", "published", "error"),
        rows=rows,
        notes=notes,
    )
