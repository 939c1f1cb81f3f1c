"""A training job as the backend remembers it: plain, frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from windtunnel_local.service.ground.list_query import ListQuery

Status = Literal["InProgress", "Completed", "Failed", "Stopping", "Stopped"]
SecondaryStatus = Literal[
    "Starting",
    "Pending",
    "Downloading",
    "Training",
    "Interrupted",
    "Restarting",
    "Uploading",
    "Stopping",
    "Stopped",
    "MaxRuntimeExceeded",
    "MaxWaitTimeExceeded",
    "Completed",
    "Failed",
]

WarmPoolState = Literal["Available", "Terminated", "Reused", "InUse"]

StopCause = Literal["requested", "requested_late", "max_runtime", "max_wait", "max_pending"]
"""``requested_late``: while what the job made was being stored."""

SpotClock = Literal["start", "checkpoint"]

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
    stop_cause: StopCause | None = None
    """Why the job is being stopped; decides between Stopped and the limits' own last states."""

    @property
    def finished(self) -> bool:
        """Whether the status is terminal."""
        return self.status in TERMINAL

    @property
    def attempt_start(self) -> datetime:
        """When the last attempt's download began, or the job was created."""
        begun = [transition.start for transition in self.transitions if transition.status == "Downloading"]
        return begun[-1] if begun else self.created

    def count(self, secondary: SecondaryStatus) -> int:
        """How often the job has been in a state."""
        return sum(transition.status == secondary for transition in self.transitions)


MOST_INTERRUPTIONS = 1000


@dataclass(frozen=True)
class SpotTerms:
    """How a managed spot job is simulated; settled when it is accepted, so that a restart changes nothing.

    The defaults are those of a backend that is told nothing of it.
    """

    interruptions: int = 0
    """How often the job is interrupted, if it runs for long enough."""
    seed: int = 0
    """The same seed gives the same moments."""
    mean_s: float = 60.0
    """Seconds of training between two interruptions, on average."""
    discount: float = 0.7
    """What spot capacity is assumed to save of the on-demand price: 0.7 is 70 %."""
    after: SpotClock = "start"
    """What the seconds of an attempt count from: the start of its containers, or the first checkpoint that
    it stored.
    """


@dataclass(frozen=True)
class WarmPool:
    """WarmPoolStatus of a job that asked for its containers to be kept."""

    status: WarmPoolState
    retained_billable_s: int | None = None
    """ResourceRetainedBillableTimeInSeconds, once nothing is kept any more."""
    reused_by: str | None = None
    """ReusedByJob."""
    launched_us: int | None = None
    """When the containers were first started, by whichever job: Unix microseconds."""
    retained_us: int | None = None
    """Since when they are kept without a job."""
    ready: bool = False
    """Whether a job may take them over: what the last one left is gone."""
    begins: Mapping[str, str] = field(default_factory=dict)
    """Of containers that were taken over, by host: the log's cursor behind the job before."""


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
    slot: str = ""
    """The name under which its containers and its folder are found: its own, unless it took over a kept one."""
    spot: SpotTerms | None = None
    """Set for a managed spot job."""
    updates: Mapping[str, Any] = field(default_factory=dict)
    """What UpdateTrainingJob has changed: members of structures of the request, by structure."""
    warm_pool: WarmPool | None = None

    def __post_init__(self) -> None:
        """``slot`` is the job's name unless another is given."""
        if not self.slot:
            object.__setattr__(self, "slot", self.name)

    @property
    def identity(self) -> str:
        """Tells it from every other job, also from one that has its name after it was deleted."""
        return f"{self.name}/{int(self.lifecycle.created.timestamp() * 1_000_000)}"

    @property
    def current(self) -> Mapping[str, Any]:
        """The request with what was updated since."""
        changed = {name: {**self.request.get(name, {}), **given} for name, given in self.updates.items()}
        return {**self.request, **changed}

    @property
    def keep_alive_s(self) -> int:
        """ResourceConfig.KeepAlivePeriodInSeconds as it is now; 0: the containers are not kept."""
        return int(self.current["ResourceConfig"].get("KeepAlivePeriodInSeconds", 0))

    @property
    def hosts(self) -> tuple[str, ...]:
        """algo-1, algo-2, ... in the order of their ranks, numbered through all instance groups."""
        resources = self.request["ResourceConfig"]
        groups = resources.get("InstanceGroups") or [resources]
        count = sum(int(group.get("InstanceCount", 1)) for group in groups)
        return tuple(f"algo-{i}" for i in range(1, count + 1))

    def stream(self, host: str) -> str:
        """The name of a host's log stream: ``<job>/algo-1-<unix seconds>``, one for each attempt.

        It follows from the record alone, so that a new server finds the stream again.
        """
        attempts = [t.start for t in self.lifecycle.transitions if t.status == "Downloading"]
        second = -1
        for begun in attempts or [self.lifecycle.created]:
            second = max(int(begun.timestamp()), second + 1)
        return f"{self.name}/{host}-{second}"


@dataclass(frozen=True)
class JobSummary:
    """What a list shows of a job."""

    name: str
    arn: str
    status: str
    secondary: str
    created: datetime
    modified: datetime
    training_end: datetime | None
    warm_pool_status: str | None


@dataclass(frozen=True, kw_only=True)
class JobQuery(ListQuery):
    """ListTrainingJobs."""

    warm_pool_status: str | None = None
