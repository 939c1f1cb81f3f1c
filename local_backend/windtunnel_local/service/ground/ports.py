"""What the service needs from the outside: the narrow ports that `app.py` wires.

The rules of a training job live in this package and know nothing of SQL,
Docker, HTTP or the wall clock. `store`, `runner` and `objects` implement these
protocols; tests implement them with small real classes (`tests/fakes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol

from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.containers import ContainerState, JobPlan, LogBatch
from windtunnel_local.service.ground.endpoint_store import EndpointStore
from windtunnel_local.service.ground.job import Job, JobQuery, JobSummary
from windtunnel_local.service.ground.search_query import SearchQuery

Progress = Callable[[str], None]
"""Called with one human-readable line; returns quickly.

It may raise, to abandon what is under way (the job was stopped meanwhile): let the exception pass.
"""


class Clock(Protocol):
    """Wall clock and monotonic clock."""

    def now(self) -> datetime:
        """The current time, timezone-aware, in UTC."""

    def monotonic(self) -> float:
        """Seconds that never run backwards; for measuring intervals."""


# --- containers -----------------------------------------------------------


class Runner(Protocol):
    """Runs the containers of a job. All calls block; all are safe from several threads.

    A class that runs jobs names this one as its base, and is found by its name in `windtunnel_local.runner`.
    """

    name: str
    read_only_mounts: bool
    """Whether a job cannot write to what is mounted read-only."""
    keeps_containers: bool = False
    """Whether a plan may have a keeper; then what is said below of a host's container means its process."""
    serves: bool = False
    """Whether a plan may have a port to be called at: see `address`."""

    def ensure_image(self, image: str, progress: Progress) -> None:
        """Make sure the image is there; build ours when it is missing. Idempotent.

        Raises:
            RunnerUnavailable: no engine; the message names the fix.
            ImageNotFound: a foreign image that the engine does not have.
        """

    def reserve(self, job: str, hosts: Sequence[str]) -> str | None:  # noqa: ARG002  of a runner of this machine
        """Ask for machines to `start` the hosts of a job on, and wait for them a second at most.

        Idempotent, to be asked again until they are there. `remove` gives them back.

        Returns:
            None: they are there. Otherwise what the job waits for, for people.

        Raises:
            RunnerError: it waits in vain.
        """
        return None

    def start(self, plan: JobPlan) -> None:
        """Create the network and start every container. Idempotent: what runs already is kept."""

    def state(self, job: str, host: str) -> ContainerState:
        """The state of one host's container; ``absent`` when there is none."""

    def wait(self, job: str, host: str, timeout_s: float) -> ContainerState:
        """Return as soon as the container has exited, or its state after ``timeout_s``."""

    def logs(self, job: str, host: str, cursor: str | None) -> Iterator[LogBatch]:
        """Follow one host's output from ``cursor`` (None: its start) until it has exited and all is read.

        Every line is delivered exactly once over any number of resumptions. A batch
        comes within 0.1 s of being printed. Stderr and stdout share one order.
        """

    def terminate(self, job: str, host: str) -> None:
        """Send SIGTERM. A container that is gone is no error."""

    def kill(self, job: str, host: str) -> None:
        """Send SIGKILL. A container that is gone is no error."""

    def remove(self, job: str) -> None:
        """Remove the job's containers and network, by force. Idempotent."""

    def retain(self, plan: JobPlan, until: datetime) -> bool:  # noqa: ARG002  of a runner that keeps none
        """Make the containers of a job that has ended fit for another: they are "created" then. Idempotent.

        No process, file or variable of the job is left in them. By themselves they end some
        seconds after ``until``. False: they cannot be kept; `remove` them.
        """
        return False

    def fits(self, plan: JobPlan) -> bool:  # noqa: ARG002
        """Whether `start` can start this plan in the containers there are, all retained and unchanged."""
        return False

    def close(self) -> None:
        """Let go of the engine when the server leaves; containers go on. Idempotent."""

    def jobs(self) -> set[str]:
        """Names of this home's jobs that have a container in any state."""

    def address(self, job: str, host: str) -> tuple[str, int] | None:  # noqa: ARG002  of a runner that serves none
        """Where the port of a running container is reached from this machine; None: nowhere now."""
        return None


# --- the record of jobs ----------------------------------------------------


@dataclass(frozen=True)
class LogEvent:
    """A stored line; ``sequence`` counts from 0 within its stream without gaps."""

    sequence: int
    timestamp_ms: int
    ingestion_ms: int
    message: str


@dataclass(frozen=True)
class LogStream:
    """One host's stream: ``<job>/algo-1-<unix seconds>``."""

    name: str
    job: str | None
    """None: it is an endpoint's or a transform job's."""
    host: str
    created_ms: int
    first_event_ms: int | None
    last_event_ms: int | None
    last_ingestion_ms: int | None
    events: int
    scanned: int = 0
    """How many of its lines were searched for metrics."""


@dataclass(frozen=True)
class MetricValue:
    """One value that a metric's expression found. ``timestamp_ms``: of the line, Unix milliseconds, UTC."""

    name: str
    timestamp_ms: int
    value: float


class Store(EndpointStore, Protocol):
    """Jobs, tags and logs, durable when a call returns. Safe from several threads."""

    def insert_job(self, job: Job, tags: Mapping[str, str] | None = None) -> None:
        """Record a new job with its tags; raises ``JobExists``."""

    def get_job(self, name: str) -> Job | None:
        """The job, or None."""

    def update_job(self, job: Job) -> None:
        """Replace the record of an existing job; its request stays. Raises ``JobNotFound``."""

    def delete_job(self, name: str) -> None:
        """Remove the job with its tags, logs and metrics; raises ``JobNotFound``."""

    def list_jobs(self, query: JobQuery) -> tuple[Sequence[JobSummary], str | None]:
        """One page and the token of the next (None at the end). Raises ``ValidationFailed``: not such a token."""

    def search_jobs(self, query: SearchQuery) -> tuple[Sequence[tuple[Job, Mapping[str, str]]], str | None]:
        """One page of jobs with their tags, and the token of the next. May walk all jobs: blocks for so long.

        Raises ``ValidationFailed``: not such a token; ``StoreUnavailable``: it takes too long.
        """

    def unfinished_jobs(self) -> Sequence[Job]:
        """Jobs not in a terminal status, oldest first."""

    def set_tags(self, arn: str, tags: Mapping[str, str]) -> None:
        """Add or overwrite tags; raises ``JobNotFound``."""

    def remove_tags(self, arn: str, keys: Sequence[str]) -> None:
        """Remove tags; unknown keys are no error."""

    def tags(self, arn: str) -> Mapping[str, str]:
        """Tags in order of their keys."""

    def created_ms(self) -> int:
        """When this record was made."""

    def open_log_stream(self, job: str | None, host: str, name: str, created_ms: int) -> None:
        """Create the stream if it is not there. Idempotent. ``job``: None for one of no training job: it stays."""

    def append_log(self, stream: str, batch: LogBatch, ingestion_ms: int) -> None:
        """Append lines and their cursor in one transaction: a crash keeps both or neither."""

    def log_cursor(self, stream: str) -> str | None:
        """Where `Runner.logs` resumes for this stream."""

    def log_stream(self, name: str) -> LogStream | None:
        """The stream, or None."""

    def log_streams(
        self, prefix: str, after: str | None = None, limit: int | None = None, descending: bool = False
    ) -> Sequence[LogStream]:
        """Streams whose name starts with ``prefix``, by name, behind the name ``after``; "": all of jobs."""

    def latest_log_streams(
        self, after: tuple[int, str] | None, limit: int, descending: bool
    ) -> Sequence[LogStream]:
        """Jobs' streams by time of their last event (0: none) and name, behind the pair ``after``."""

    def log_streams_begun(self, after: tuple[int, str], before_ms: int, limit: int) -> Sequence[LogStream]:
        """Jobs' streams by time of first event and name: behind the pair ``after``, begun before ``before_ms``."""

    def log_streams_across(self, moment_ms: int) -> Sequence[LogStream]:
        """Jobs' streams with an event before the moment and one at or after it."""

    def read_log(
        self, stream: str, first: int, limit: int, start_ms: int | None = None, end_ms: int | None = None
    ) -> Sequence[LogEvent]:
        """Up to ``limit`` events with sequence >= first and start_ms <= timestamp < end_ms, in order.

        Fewer where lines are long, but one if there is any.
        """

    def read_log_before(
        self, stream: str, before: int, limit: int, start_ms: int | None = None, end_ms: int | None = None
    ) -> Sequence[LogEvent]:
        """The last ``limit`` events with sequence < before and start_ms <= timestamp < end_ms, in order.

        Fewer where lines are long, but one if there is any.
        """

    def append_metrics(self, stream: str, values: Sequence[MetricValue], scanned: int) -> None:
        """Store what was found, and up to where its stream was searched, in one transaction."""

    def metric_values(self, job: str, name: str, start_ms: int, end_ms: int) -> Sequence[tuple[int, float]]:
        """Times (Unix ms) and values with start_ms <= time < end_ms, in order of time."""

    def metric_names(
        self, job: str | None, name: str | None, after: tuple[str, str] | None, limit: int
    ) -> Sequence[tuple[str, str]]:
        """Pairs of job and metric, of one job or metric where given, behind the pair ``after``, in order."""

    def last_metrics(self, job: str) -> Sequence[MetricValue]:
        """The latest value of each metric of a job, by name."""


# --- objects ---------------------------------------------------------------


@dataclass(frozen=True)
class ObjectInfo:
    """An object in a bucket. ``etag`` is unquoted."""

    key: str
    size: int
    etag: str
    modified: datetime
    metadata: Mapping[str, str] = field(default_factory=dict)


class ObjectStore(Protocol):
    """Buckets and objects as files: streamed, written to a temporary name and renamed."""

    def create_bucket(self, bucket: str) -> None:
        """Create it if it is not there. Idempotent."""

    def has_bucket(self, bucket: str) -> bool:
        """Whether it exists."""

    def put(
        self, bucket: str, key: str, data: BinaryIO, metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        """Store the stream's rest. Raises ``NoSuchBucket``."""

    def head(self, bucket: str, key: str) -> ObjectInfo | None:
        """The object's description, or None."""

    def path(self, bucket: str, key: str) -> Path:
        """The object's bytes as a local file, to be read only. Raises ``NoSuchKey``."""

    def list(self, bucket: str, prefix: str, after: str = "", limit: int = 1000) -> Sequence[ObjectInfo]:
        """Objects with the prefix and key > after, in key order (UTF-8 bytes). Raises ``NoSuchBucket``."""

    def delete(self, bucket: str, key: str) -> None:
        """Remove it; a missing one is no error."""


# --- keys ------------------------------------------------------------------

JobKeys = Callable[[Job, datetime], Mapping[str, str]]
"""Makes variables with keys of a job's role: they work until the job or their time ends."""


def no_keys(_job: Job, _until: datetime) -> Mapping[str, str]:
    """Of a backend that gives none."""
    return {}


@dataclass(frozen=True)
class Ports:
    """All ports and the settings in one hand. Safe from several threads."""

    store: Store
    runner: Runner
    objects: ObjectStore
    clock: Clock
    config: ServiceConfig
    job_keys: JobKeys = no_keys

    def now_ms(self) -> int:
        """Unix milliseconds."""
        return int(self.clock.now().timestamp() * 1000)
