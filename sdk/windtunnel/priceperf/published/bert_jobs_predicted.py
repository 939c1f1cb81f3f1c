"""AWS's two published jobs (`bert_jobs`), predicted from a rehearsal of the same job.

The steps are predicted: no figure of these jobs is in the calibration of the device, and one of the trn1 job is in that
of the host (`host_tracing.REFERENCE_S`). The time outside of steps is mostly that of tokenising 4,000,000 reviews in
one process. No other published figure exists for it, so one number, `fixed_costs.TOKENISE_S`, is fitted to both jobs.
`Predictions.crossed` predicts each job with the time that the other one gives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..instances import instance_type
from ..model.fixed_costs import TOKENISE_S
from ..model.precision import AUTO_CAST, FP32, TF32, Precision
from ..money.billing import cost_usd
from ..money.estimate import Estimate, estimate
from ..money.prices import PriceBook
from ..money.verdict import ratio_width
from ..workload.cluster import Cluster, Run
from ..workload.full_scale import FullScale
from ..workload.workload import CountedWorkload, Workload
from .bert_jobs import GLOBAL_BATCH, P4D, PUBLISHED_ON, SEQUENCE_LENGTH, TRAIN_SAMPLES, TRN1, PublishedJob
from .bert_rehearsal import COUNTERS

EVALUATION_SAMPLES = 400_000
DATASET_GIB = 1.6
"""Amazon Polarity as CSV; each instance downloads the training and the test part."""
TOKENISED = TRAIN_SAMPLES + EVALUATION_SAMPLES
JOB = FullScale(
    TRAIN_SAMPLES,
    evaluation_samples=EVALUATION_SAMPLES,
    dataset_gib=DATASET_GIB,
    tokenised_samples=TOKENISED,
    sequence_length=SEQUENCE_LENGTH,
)
"""The size of both jobs."""


@dataclass(frozen=True)
class Prediction:
    """One of the jobs as published, and as modelled from a rehearsal. ``tokenise_s``: assumed seconds a sample."""

    job: PublishedJob
    estimate: Estimate
    tokenise_s: float

    @property
    def iterations_per_second(self) -> float:
        """The modelled iterations per second."""
        return 1 / self.estimate.step.total_s

    @property
    def iterations_interval(self) -> tuple[float, float]:
        """Low and high end of `iterations_per_second`."""
        fast, slow = self.estimate.step_interval_s
        return 1 / slow, 1 / fast

    @property
    def iterations_error(self) -> float:
        """Relative error of `iterations_per_second`: 0.1 is 10 % too fast."""
        return self.iterations_per_second / self.job.iterations_per_second - 1

    @property
    def billable_error(self) -> float:
        """Relative error of the billable seconds: 0.1 is 10 % too long."""
        return self.estimate.billable_s / self.job.billable_seconds - 1

    @property
    def cost_usd(self) -> float:
        """US dollars: modelled billable seconds at the published price."""
        return cost_usd(self.job.usd_per_hour, self.estimate.billable_s)

    def as_dict(self) -> dict[str, Any]:
        """All figures as plain data, with units in the names."""
        low, high = self.iterations_interval
        return {
            "instance_type": self.job.instance_type,
            "precision": self.estimate.precision.name,
            "iterations_per_s": round(self.iterations_per_second, 2),
            "iterations_interval": [round(low, 2), round(high, 2)],
            "published_iterations_per_s": self.job.iterations_per_second,
            "iterations_error_percent": round(100 * self.iterations_error, 1),
            "step_parts_ms": {name: round(1e3 * s, 1) for name, s in self.estimate.step.parts.items() if s},
            "fixed_s": {item.name: round(item.seconds, 1) for item in self.estimate.fixed if item.billed},
            "tokenise_ms": round(1e3 * self.tokenise_s, 3),
            "billable_s": self.estimate.billable_s,
            "billable_interval_s": list(self.estimate.billable_interval_s),
            "published_billable_s": self.job.billable_seconds,
            "billable_error_percent": round(100 * self.billable_error, 1),
            "cost_usd": round(self.cost_usd, 2),
            "published_cost_usd": self.job.cost_usd,
        }


@dataclass(frozen=True)
class Predictions:
    """The predictions of both jobs, and of the ratio of their costs.

    ``p4d_tf32``: the p4d job in TF32, by one line of the script that AWS's script evidently did not have.
    ``crossed``: the same predictions, each with the tokenising time that the other job gives; there it is None.
    """

    trn1: Prediction
    p4d: Prediction
    p4d_tf32: Prediction
    crossed: Predictions | None = None

    @property
    def cost_ratio(self) -> float:
        """Modelled cost on trn1 divided by that on p4d, at the published prices."""
        return self.trn1.cost_usd / self.p4d.cost_usd

    @property
    def saving_interval(self) -> tuple[float, float]:
        """Low and high end of 1 - `cost_ratio`."""
        book = PriceBook()
        costs = [
            (item.estimate, item.estimate.cost(book.price(item.job.instance_type, PUBLISHED_ON)))
            for item in (self.trn1, self.p4d)
        ]
        down, up = ratio_width(*costs)
        return 1 - self.cost_ratio * math.exp(up), 1 - self.cost_ratio / math.exp(down)

    @property
    def published_cost_ratio(self) -> float:
        """The same ratio from the published seconds."""
        return self.trn1.job.recomputed_usd / self.p4d.job.recomputed_usd

    @property
    def cost_ratio_error(self) -> float:
        """Relative error of `cost_ratio`: 0.1 is 10 % too expensive on trn1."""
        return self.cost_ratio / self.published_cost_ratio - 1


def predictions(counters: Mapping[str, Any] = COUNTERS) -> Predictions:
    """Predict both jobs from the counters of a rehearsal with BERT base's dimensions, batch 8 a core, sequence 128.

    Raises:
        InvalidCounters: the counters cannot be modelled.
    """
    workload = Workload.from_counters(counters)

    def modelled(job: PublishedJob, precision: Precision, tokenise_s: float | None = None) -> Prediction:
        """Predict one job. ``tokenise_s``: seconds a sample; None: the fitted ones."""
        size = JOB
        if tokenise_s is not None:
            size = replace(JOB, preparation_s=tokenise_s * TOKENISED, tokenised_samples=0)
        run = _run(job, precision)
        taken = TOKENISE_S.value if tokenise_s is None else tokenise_s
        return Prediction(job, estimate(workload, run, size), taken)

    def left_over(job: PublishedJob, precision: Precision) -> float:
        """Seconds a sample that are left of the published billable time without its steps and modelled fixed costs."""
        rest = math.fsum(item.seconds for item in modelled(job, precision, 0.0).estimate.fixed if item.billed)
        return max(0.0, job.billable_seconds - job.step_seconds - rest) / TOKENISED

    of_trn1, of_p4d = left_over(TRN1, AUTO_CAST), left_over(P4D, FP32)
    crossed = Predictions(
        modelled(TRN1, AUTO_CAST, of_p4d), modelled(P4D, FP32, of_trn1), modelled(P4D, TF32, of_trn1)
    )
    return Predictions(modelled(TRN1, AUTO_CAST), modelled(P4D, FP32), modelled(P4D, TF32), crossed)


def quantities(prediction: Prediction) -> dict[str, float]:
    """The job's quantities to compare with the calibrated ranges, from the built-in rehearsal."""
    workload = CountedWorkload.from_counters(COUNTERS)
    found = workload.quantities(_run(prediction.job, prediction.estimate.precision), JOB)
    return {name: float(f"{value:.6g}") for name, value in found.items() if value is not None}


def _run(job: PublishedJob, precision: Precision) -> Run:
    return Run(Cluster(instance_type(job.instance_type), 1), GLOBAL_BATCH, precision)


def without_tracing() -> Predictions:
    """The same predictions from counters that say nothing of the host, like those of earlier versions."""
    of_the_host = ("trace_seconds", "least_trace_seconds", "launches")
    train = {key: value for key, value in COUNTERS["train"].items() if key not in of_the_host}
    return predictions({**COUNTERS, "train": train})
