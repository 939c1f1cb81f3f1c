"""A training job as the backend remembers it: plain, frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Status = Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]
SecondaryStatus = Literal[
    "Starting",
    "Pending",
    "Downloading",
    "Training",
    "Uploading",
    "Stopping",
    "Stopped",
    "MaxRuntimeExceeded",
    "Completed",
    "Failed",
]

TERMINAL: frozenset[str] = frozenset({"Completed", "Failed", "Stopped"})


@dataclass(frozen=True)
class Transition:
    """One entry of SecondaryStatusTransitions."""

    status: SecondaryStatus
    start: datetime
    end: datetime | None
    message: str


@dataclass(frozen=True)
class Lifecycle:
    """Where a job stands. Changed only by `lifecycle.advance`."""

    status: Status
    secondary: SecondaryStatus
    transitions: tuple[Transition, ...]
    created: datetime
    modified: datetime
    training_start: datetime | None = None
    training_end: datetime | None = None
    failure_reason: str | None = None
    """Known from the start of Uploading; an answer to a client shows it once the status is Failed."""
    stop_cause: Literal["requested", "max_runtime"] | None = None
    """Why the job is being stopped; decides between Stopped and MaxRuntimeExceeded."""

    @property
    def finished(self) -> bool:
        """Whether the status is terminal."""
        return self.status in TERMINAL


@dataclass(frozen=True)
class Job:
    """The accepted request, and what became of it."""

    name: str
    arn: str
    request: Mapping[str, Any]
    """CreateTrainingJob's members as accepted, without Tags."""
    lifecycle: Lifecycle
    model_artifact: str | None = None
    """s3:// URI of model.tar.gz once it is stored."""
    final_metrics: tuple[Mapping[str, Any], ...] = field(default=())
    """FinalMetricDataList: MetricName, Value, Timestamp."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """algo-1, algo-2, ... in the order of their ranks."""
        count = int(self.request["ResourceConfig"].get("InstanceCount", 1))
        return tuple(f"algo-{i}" for i in range(1, count + 1))


@dataclass(frozen=True)
class JobQuery:
    """ListTrainingJobs: filters, order and page."""

    name_contains: str | None = None
    status: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    modified_after: datetime | None = None
    modified_before: datetime | None = None
    sort_by: Literal["Name", "CreationTime", "Status"] = "CreationTime"
    sort_order: Literal["Ascending", "Descending"] = "Descending"
    limit: int = 10
    token: str | None = None
