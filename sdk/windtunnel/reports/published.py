"""AWS's published table of trn1 against p4d: recomputed, and predicted from a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windtunnel.priceperf import PublishedComparison, published_comparison
from windtunnel.priceperf.published.bert_jobs import SOURCE, PublishedJob
from windtunnel.priceperf.published.bert_jobs_predicted import Predictions, predictions, without_tracing
from windtunnel.priceperf.published.bert_rehearsal import COUNTERS, HOST_CPU
from windtunnel.rendering.document import Document, Row, Section
from windtunnel.rendering.report import Report


@dataclass(eq=False, repr=False)
class PublishedReport(Report):
    """AWS's published table with its arithmetic checked, and the same jobs as modelled from a rehearsal.

    Attributes:
        table: the published figures, and what is computed from them.
        predicted: the same jobs, modelled.
    """

    table: PublishedComparison
    predicted: Predictions

    def document(self) -> Document:
        """The published table, its arithmetic, the later price, and the model's predictions beside it."""
        return Document(
            "AWS's published price/performance: BERT base on Amazon Polarity",
            SOURCE,
            (
                f"trn1 saves {self.table.saving_printed_percent:.1f} % at the prices of 2022, "
                f"{self.table.saving_later_percent:.1f} % with p4d's price of "
                f"{self.table.later_price.effective_from:%Y}.",
            ),
            (_table(self.table), _ratios(self.table), _predicted(self.predicted)),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": "windtunnel.published/1",
            "source": SOURCE,
            "rows": [_row_data(job) for job in (self.table.trn1, self.table.p4d)],
            "iterations_faster_percent": round(self.table.faster_percent, 3),
            "billable_shorter_percent": round(self.table.shorter_percent, 3),
            "saving_percent": {
                "published_costs": round(self.table.saving_printed_percent, 3),
                "recomputed": round(self.table.saving_recomputed_percent, 3),
                "with_later_p4d_price": round(self.table.saving_later_percent, 3),
            },
            "later_p4d_price": {
                "usd_per_hour": self.table.later_price.usd_per_hour,
                "effective_from": self.table.later_price.effective_from.isoformat(),
                "status": self.table.later_price.status,
                "region": self.table.later_price.region,
                "source": self.table.later_price.source,
                "cost_usd": round(self.table.p4d_later_usd, 3),
            },
            "rehearsed_on": HOST_CPU,
            "modelled": [
                item.as_dict() for item in (self.predicted.trn1, self.predicted.p4d, self.predicted.p4d_tf32)
            ],
            "modelled_cost_ratio": round(self.predicted.cost_ratio, 3),
            "published_cost_ratio": round(self.predicted.published_cost_ratio, 3),
            "cost_ratio_error_percent": round(100 * self.predicted.cost_ratio_error, 1),
        }


def published() -> PublishedReport:
    """AWS's price/performance table of trn1 against p4d, recomputed, and predicted from a rehearsal."""
    return PublishedReport(published_comparison(), predictions())


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
        "Published", "published", "SageMaker prices of 2022-10-10, us-east-1",
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


def _predicted(predicted: Predictions) -> Section:
    return Section(
        "This model, held against it",
        "modelled",
        "from a rehearsal",
        tuple(item.job.instance_type.removeprefix("ml.") for item in (predicted.trn1, predicted.p4d)),
        _beside_published(predicted),
        _how_predicted(predicted),
    )


def _beside_published(predicted: Predictions) -> tuple[Row, ...]:
    jobs = (predicted.trn1, predicted.p4d)
    return (
        Row("Matmuls run as", tuple(item.estimate.precision.name for item in jobs)),
        Row("Iterations/s", tuple(f"{item.iterations_per_second:.2f}" for item in jobs), "total"),
        Row("interval", tuple(_span(item.iterations_interval, ".2f") for item in jobs), "detail"),
        Row("published", tuple(f"{item.job.iterations_per_second:.2f}" for item in jobs), "detail"),
        Row("error", tuple(f"{item.iterations_error:+.1%}".replace("%", " %") for item in jobs), "detail"),
        Row("Billable", tuple(f"{item.estimate.billable_s:,} s" for item in jobs), "total"),
        Row(
            "interval",
            tuple(_span(item.estimate.billable_interval_s, ",d") + " s" for item in jobs),
            "detail",
        ),
        Row("published", tuple(f"{item.job.billable_seconds:,} s" for item in jobs), "detail"),
        Row("error", tuple(f"{item.billable_error:+.1%}".replace("%", " %") for item in jobs), "detail"),
        Row("Cost at the prices of 2022", tuple(f"${item.cost_usd:.2f}" for item in jobs), "total"),
        Row("published, recomputed", tuple(f"${item.job.recomputed_usd:.2f}" for item in jobs), "detail"),
        Row(
            "Cost of trn1 / p4d",
            (f"{predicted.cost_ratio:.3f}", f"published {predicted.published_cost_ratio:.3f}"),
        ),
    )


def _how_predicted(predicted: Predictions) -> tuple[str, ...]:
    trn1 = predicted.trn1.estimate
    tracing = COUNTERS["train"]["least_trace_seconds"]
    bare = without_tracing().trn1.iterations_per_second
    return (
        "From a rehearsal of the example with BERT base's dimensions (batch 8 a core, 256 in all, sequence 128) on "
        "2 simulated cores; tests/benchmarks/rehearsal.py repeats it. None of these figures is in the "
        "calibration of the steps.",
        f"On trn1 the host decides: tracing a step in Python took {tracing * 1e3:.0f} ms of the processor of the "
        f"rehearsal ({HOST_CPU}), and the NeuronCore's work is modelled with "
        f"{(trn1.step.total_s - trn1.step.host_s) * 1e3:.0f} ms, behind which as much of it is hidden. "
        f"Without the host this model says {bare:.1f} iterations/s. Most of the tracing is the optimizer, "
        "tensor by tensor.",
        "The interval holds the speed of another processor (assumed 0.65 to 1.6 times the seconds), which is the "
        "largest doubt here: neither AWS's host nor its versions of PyTorch and transformers (2022) ran here.",
        f"Preparation is tokenising 4,000,000 reviews in one process, {predicted.trn1.tokenise_s * 1e3:.2f} ms each: "
        "fitted to what both jobs spent beside steps and all else that is modelled. Each taken from the other job "
        f"instead ({_crossed(predicted)}).",
        "The published p4d figure is near full fp32, PyTorch's default since 1.12, and far from TF32 "
        f"({predicted.p4d_tf32.iterations_per_second:.1f} iterations/s modelled), which is one line in the script: "
        "the published saving is one over a p4d in fp32.",
    )


def _span(ends: tuple[float, float], form: str) -> str:
    return f"{ends[0]:{form}} to {ends[1]:{form}}"


def _crossed(predicted: Predictions) -> str:
    other = predicted.crossed
    if other is None:
        return "not modelled"
    jobs = (other.trn1, other.p4d)
    rates = " and ".join(f"{item.tokenise_s * 1e3:.2f}" for item in jobs)
    seconds = " and ".join(f"{item.estimate.billable_s:,} s ({item.billable_error:+.1%})" for item in jobs)
    return f"{rates} ms): {seconds} are billable, cost ratio {other.cost_ratio:.3f} ({other.cost_ratio_error:+.1%}"
