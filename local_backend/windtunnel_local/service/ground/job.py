"""A training job as the backend records it: plain, frozen data."""

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
"""``requested_late``: a user asked to stop while the job's outputs were being uploaded."""

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
    """A job's status and the history of its secondary status. Only `lifecycle.advance` changes it."""

    status: Status
    secondary: SecondaryStatus
    transitions: tuple[Transition, ...]
    created: datetime
    modified: datetime
    training_start: datetime | None = None
    training_end: datetime | None = None
    failure_reason: str | None = None
    """Set from the start of Uploading on; an answer to a client shows it only once the status is Failed."""
    stop_cause: StopCause | None = None
    """Why the job is being stopped; decides whether it ends as Stopped, MaxRuntimeExceeded or MaxWaitTimeExceeded."""

    @property
    def finished(self) -> bool:
        """Whether the status is terminal."""
        return self.status in TERMINAL

    @property
    def attempt_start(self) -> datetime:
        """When the last attempt's download began; the job's creation if none has begun."""
        begun = [transition.start for transition in self.transitions if transition.status == "Downloading"]
        return begun[-1] if begun else self.created

    def count(self, secondary: SecondaryStatus) -> int:
        """How often the job has entered a secondary status."""
        return sum(transition.status == secondary for transition in self.transitions)


MOST_INTERRUPTIONS = 1000


@dataclass(frozen=True)
class SpotTerms:
    """How a managed spot job is simulated; fixed when the job is accepted, so that a restart changes nothing.

    The defaults hold where neither the job nor the backend's settings name a value.
    """

    interruptions: int = 0
    """How many interruptions the job gets, if it runs long enough."""
    seed: int = 0
    """The same seed gives interruptions at the same moments."""
    mean_s: float = 60.0
    """Average seconds of training from the start of an attempt (see ``after``) to its interruption."""
    discount: float = 0.7
    """The saving of spot capacity that is assumed, as a share of the on-demand price: 0.7 is 70 %."""
    after: SpotClock = "start"
    """From when the seconds of an attempt are counted: the start of its containers, or the first checkpoint
    that it stored, so that every attempt makes progress.
    """


@dataclass(frozen=True)
class WarmPool:
    """WarmPoolStatus of a job that asked for its containers to be kept."""

    status: WarmPoolState
    retained_billable_s: int | None = None
    """ResourceRetainedBillableTimeInSeconds; set when the pool ends."""
    reused_by: str | None = None
    """ReusedByJob."""
    launched_us: int | None = None
    """When the containers were first started, by whichever job: Unix microseconds."""
    retained_us: int | None = None
    """When the last job ended, since when the containers are kept without one: Unix microseconds."""
    ready: bool = False
    """Whether a job may take the containers over: the last job's files and processes are removed."""
    begins: Mapping[str, str] = field(default_factory=dict)
    """For containers that were taken over, by host: the log cursor after the previous job's output."""


@dataclass(frozen=True)
class Job:
    """An accepted CreateTrainingJob request, and the state and results of the job."""

    name: str
    arn: str
    request: Mapping[str, Any]
    """CreateTrainingJob's members as accepted, without Tags."""
    lifecycle: Lifecycle
    model_artifact: str | None = None
    """The s3:// URI of the model artifact, once it is stored."""
    final_metrics: tuple[Mapping[str, Any], ...] = field(default=())
    """FinalMetricDataList: MetricName, Value, Timestamp."""
    slot: str = ""
    """The name of its containers and its folder: the job's name, unless it took over a warm pool or got another."""
    spot: SpotTerms | None = None
    """Set for a managed spot job."""
    updates: Mapping[str, Any] = field(default_factory=dict)
    """What UpdateTrainingJob has changed: by structure of the request (as ResourceConfig), its new members."""
    warm_pool: WarmPool | None = None

    def __post_init__(self) -> None:
        """Set ``slot`` to the job's name if none was given."""
        if not self.slot:
            object.__setattr__(self, "slot", self.name)

    @property
    def identity(self) -> str:
        """Name and creation time: distinguishes the job also from a later one with the same name."""
        return f"{self.name}/{int(self.lifecycle.created.timestamp() * 1_000_000)}"

    @property
    def current(self) -> Mapping[str, Any]:
        """The request with the changes of UpdateTrainingJob."""
        changed = {name: {**self.request.get(name, {}), **given} for name, given in self.updates.items()}
        return {**self.request, **changed}

    @property
    def keep_alive_s(self) -> int:
        """ResourceConfig.KeepAlivePeriodInSeconds after updates; 0: the containers are not kept."""
        return int(self.current["ResourceConfig"].get("KeepAlivePeriodInSeconds", 0))

    @property
    def hosts(self) -> tuple[str, ...]:
        """algo-1, algo-2, ... in the order of their ranks, numbered across all instance groups."""
        resources = self.request["ResourceConfig"]
        groups = resources.get("InstanceGroups") or [resources]
        count = sum(int(group.get("InstanceCount", 1)) for group in groups)
        return tuple(f"algo-{i}" for i in range(1, count + 1))

    def stream(self, host: str) -> str:
        """The name of a host's log stream in the last attempt: ``<job>/algo-1-<unix seconds>``.

        It is derived from the record alone, so that a new server finds the stream again.
        """
        attempts = [t.start for t in self.lifecycle.transitions if t.status == "Downloading"]
        second = -1
        for begun in attempts or [self.lifecycle.created]:
            second = max(int(begun.timestamp()), second + 1)
        return f"{self.name}/{host}-{second}"


@dataclass(frozen=True)
class JobSummary:
    """A job as ListTrainingJobs shows it."""

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
    """The parameters of ListTrainingJobs."""

    warm_pool_status: str | None = None
