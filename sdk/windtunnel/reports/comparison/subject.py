"""What can be compared: a job that has run, its counters, or a description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windtunnel.errors import JobNotFinished
from windtunnel.priceperf import (
    ARCHITECTURES,
    DescribedWorkload,
    InvalidInput,
    Workload,
)
from windtunnel.rendering import format as fmt
from windtunnel.reports.job.report import ReportableJob

Subject = ReportableJob | Workload | Mapping[str, Any]


def read(job: Subject) -> tuple[str, Workload]:
    """The title and the workload of what is compared.

    Raises:
        InvalidInput: it is neither a job, nor counters, nor a workload.
        JobNotFinished: the job has left no counters.
    """
    if isinstance(job, Workload):
        return _described_title(job), job
    if isinstance(job, Mapping):
        return fmt.name(job.get("job") or "counters"), Workload.from_counters(job)
    if not hasattr(job, "counters") or not hasattr(job, "describe"):
        raise InvalidInput(
            f"compare a job, its counters or a Workload, not {type(job).__name__}; "
            "Workload.transformer(...) describes a job that has not run"
        )
    describe = job.describe()
    counters = job.counters()
    name = fmt.name(describe.get("TrainingJobName", "job"))
    if counters is None:
        raise JobNotFinished(f"{name} has left no counters, so there is nothing to model from")
    return name, Workload.from_counters(counters)


def _described_title(job: Workload) -> str:
    if not isinstance(job, DescribedWorkload):
        return "a rehearsed job"
    names = (name for name, model in ARCHITECTURES.items() if model == job.architecture)
    name = fmt.one_line(job.architecture.name or next(names, "transformer"), 40)
    # Parameters and adapters together would not fit the title's line; the answer has the parameters too.
    what = f"{fmt.quantity(job.parameters, '')} parameters" if job.lora is None else job.lora.words
    return f"{name}, {what}, sequences of {job.sequence_length:,}"
