"""The ports: interfaces through which the service reaches the outside. `app.py` wires their implementations.

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
"""A callback that gets one line of progress, for people; it returns quickly.

It may raise to abandon the work, because the job was stopped: let the exception pass.
"""


class Clock(Protocol):
    """Wall clock and monotonic clock."""

    def now(self) -> datetime:
        """The current time, timezone-aware, in UTC."""

    def monotonic(self) -> float:
        """Seconds of a clock that is never set back, for measuring intervals."""


# --- containers -----------------------------------------------------------


class Runner(Protocol):
    """Runs the containers of a job. All calls block; all are thread-safe.

    Every runner names this class as its base; `windtunnel_local.runner` lists the runners by name.
    """

    name: str
    read_only_mounts: bool
    """Whether the runner enforces read-only mounts, so that a job cannot write to them."""
    keeps_containers: bool = False
    """Whether a plan may have a keeper. With a keeper, "container" below means the job's process in it."""
    serves: bool = False
    """Whether a plan may have a port at which the container answers requests: see `address`."""

    def ensure_image(self, image: str, progress: Progress) -> None:
        """Make sure that the image is there; build Windtunnel's own if it is missing. Idempotent.

        Raises:
            RunnerUnavailable: the engine is away; the message says what to do.
            ImageNotFound: the image is not Windtunnel's own, and the engine does not have it.
        """

    def reserve(self, job: str, hosts: Sequence[str]) -> str | None:  # noqa: ARG002  the default: no machines to ask for
        """Ask for the machines on which `start` will run the hosts of a job; wait a second at most.

        Idempotent; call it again until the machines are there. `remove` gives them back.

        Returns:
            None if the machines are there; otherwise a text that tells people what the job waits for.

        Raises:
            RunnerError: the job would wait in vain.
        """
        return None

    def start(self, plan: JobPlan) -> None:
        """Create the network and start every container. Idempotent: containers that run already are kept."""

    def state(self, job: str, host: str) -> ContainerState:
        """The state of one host's container; ``absent`` if there is none."""

    def wait(self, job: str, host: str, timeout_s: float) -> ContainerState:
        """Wait until the container has exited, at most ``timeout_s``; return its state."""

    def logs(self, job: str, host: str, cursor: str | None) -> Iterator[LogBatch]:
        """Follow one host's output from ``cursor`` (None: its start) until it has exited and all is read.

        Each line is delivered exactly once, however often reading is resumed. A batch comes within 0.1 s
        of being printed. Lines of stdout and stderr come in the order in which they were printed.
        """

    def terminate(self, job: str, host: str) -> None:
        """Send SIGTERM to the container. Does nothing if it is gone."""

    def kill(self, job: str, host: str) -> None:
        """Send SIGKILL to the container. Does nothing if it is gone."""

    def remove(self, job: str) -> None:
        """Remove the job's containers and network, by force. Idempotent."""

    def retain(self, plan: JobPlan, until: datetime) -> bool:  # noqa: ARG002  the default: keeps none
        """Reset the containers of a job that has ended, for a next job: their state is then "created". Idempotent.

        No process, file or variable of the job is left in them. They end by themselves some seconds
        after ``until``. False: they cannot be kept; `remove` them.
        """
        return False

    def fits(self, plan: JobPlan) -> bool:  # noqa: ARG002
        """Whether `start` can run this plan in the containers of its slot: all are retained and match the plan."""
        return False

    def close(self) -> None:
        """Close the connection to the engine at the server's shutdown; containers run on. Idempotent."""

    def jobs(self) -> set[str]:
        """The slots of this WINDTUNNEL_HOME that have a container, in whatever state."""

    def address(self, job: str, host: str) -> tuple[str, int] | None:  # noqa: ARG002  the default: serves none
        """Host and port at which this machine reaches the port of a running container; None: not reachable now."""
        return None


# --- the record of jobs ----------------------------------------------------


@dataclass(frozen=True)
class LogEvent:
    """A stored line of a log. ``sequence``: its number in the stream, from 0, without gaps; times in Unix ms."""

    sequence: int
    timestamp_ms: int
    ingestion_ms: int
    message: str


@dataclass(frozen=True)
class LogStream:
    """The log stream of one host, as ``<job>/algo-1-<unix seconds>``. Times in Unix milliseconds."""

    name: str
    job: str | None
    """The training job; None for the stream of an endpoint or a transform job."""
    host: str
    created_ms: int
    first_event_ms: int | None
    last_event_ms: int | None
    last_ingestion_ms: int | None
    events: int
    scanned: int = 0
    """How many of its lines have been searched for metrics."""


@dataclass(frozen=True)
class MetricValue:
    """One value that a metric's Regex found. ``timestamp_ms``: the time of its line, Unix milliseconds."""

    name: str
    timestamp_ms: int
    value: float


class Store(EndpointStore, Protocol):
    """Stores jobs, tags, logs and metrics. Each change is durable when the call returns. Thread-safe."""

    def insert_job(self, job: Job, tags: Mapping[str, str] | None = None) -> None:
        """Record a new job with its tags; raises ``JobExists``."""

    def get_job(self, name: str) -> Job | None:
        """The job, or None."""

    def update_job(self, job: Job) -> None:
        """Replace the record of an existing job; its request stays. Raises ``JobNotFound``."""

    def delete_job(self, name: str) -> None:
        """Remove the job with its tags, logs and metrics; raises ``JobNotFound``."""

    def list_jobs(self, query: JobQuery) -> tuple[Sequence[JobSummary], str | None]:
        """One page, and the token of the next one (None at the end). Raises ``ValidationFailed`` for a bad token."""

    def search_jobs(self, query: SearchQuery) -> tuple[Sequence[tuple[Job, Mapping[str, str]]], str | None]:
        """One page of jobs with their tags, and the token of the next one. May read all jobs, which takes time.

        Raises ``ValidationFailed`` for a bad token, ``StoreUnavailable`` if the search takes too long.
        """

    def unfinished_jobs(self) -> Sequence[Job]:
        """Jobs that have not ended, oldest first."""

    def set_tags(self, arn: str, tags: Mapping[str, str]) -> None:
        """Add or overwrite tags; raises ``JobNotFound``."""

    def remove_tags(self, arn: str, keys: Sequence[str]) -> None:
        """Remove tags; unknown keys are no error."""

    def tags(self, arn: str) -> Mapping[str, str]:
        """Tags, sorted by key."""

    def created_ms(self) -> int:
        """When this store was created, in Unix milliseconds."""

    def open_log_stream(self, job: str | None, host: str, name: str, created_ms: int) -> None:
        """Create the stream if it does not exist. ``job``: None if it is not a training job's; it is then kept."""

    def append_log(self, stream: str, batch: LogBatch, ingestion_ms: int) -> None:
        """Append lines and save their cursor in one transaction: a crash keeps both or none."""

    def log_cursor(self, stream: str) -> str | None:
        """The cursor at which `Runner.logs` resumes this stream; None if nothing is stored."""

    def log_stream(self, name: str) -> LogStream | None:
        """The stream, or None."""

    def log_streams(
        self, prefix: str, after: str | None = None, limit: int | None = None, descending: bool = False
    ) -> Sequence[LogStream]:
        """Streams whose name starts with ``prefix`` ("": all of training jobs), by name, after the name ``after``."""

    def latest_log_streams(
        self, after: tuple[int, str] | None, limit: int, descending: bool
    ) -> Sequence[LogStream]:
        """Training jobs' streams by time of last event (0: none) and name, after the pair ``after``."""

    def log_streams_begun(self, after: tuple[int, str], before_ms: int, limit: int) -> Sequence[LogStream]:
        """Training jobs' streams by time of first event and name, after the pair ``after`` and before ``before_ms``."""

    def log_streams_across(self, moment_ms: int) -> Sequence[LogStream]:
        """Training jobs' streams that have an event before the moment and one at or after it."""

    def read_log(
        self, stream: str, first: int, limit: int, start_ms: int | None = None, end_ms: int | None = None
    ) -> Sequence[LogEvent]:
        """Up to ``limit`` events with sequence >= first and start_ms <= timestamp < end_ms, in order.

        Fewer if the lines are long, but at least one if there is any.
        """

    def read_log_before(
        self, stream: str, before: int, limit: int, start_ms: int | None = None, end_ms: int | None = None
    ) -> Sequence[LogEvent]:
        """The last ``limit`` events with sequence < before and start_ms <= timestamp < end_ms, in order.

        Fewer if the lines are long, but at least one if there is any.
        """

    def append_metrics(self, stream: str, values: Sequence[MetricValue], scanned: int) -> None:
        """Store the values found, and how many lines of the stream were searched, in one transaction."""

    def metric_values(self, job: str, name: str, start_ms: int, end_ms: int) -> Sequence[tuple[int, float]]:
        """Times (Unix ms) and values with start_ms <= time < end_ms, in order of time."""

    def metric_names(
        self, job: str | None, name: str | None, after: tuple[str, str] | None, limit: int
    ) -> Sequence[tuple[str, str]]:
        """Sorted pairs of job and metric name, after the pair ``after``; only of ``job`` and ``name`` where given."""

    def last_metrics(self, job: str) -> Sequence[MetricValue]:
        """The latest value of each metric of a job, by name."""


# --- objects ---------------------------------------------------------------


@dataclass(frozen=True)
class ObjectInfo:
    """An object in a bucket. ``etag``: without quotes; ``size``: bytes."""

    key: str
    size: int
    etag: str
    modified: datetime
    metadata: Mapping[str, str] = field(default_factory=dict)


class ObjectStore(Protocol):
    """Buckets and objects as files. Writes are streamed to a temporary file, which is then renamed."""

    def has_bucket(self, bucket: str) -> bool:
        """Whether the bucket exists."""

    def put(
        self, bucket: str, key: str, data: BinaryIO, metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        """Store the stream, from its current position to its end. Raises ``NoSuchBucket``."""

    def head(self, bucket: str, key: str) -> ObjectInfo | None:
        """The object's description; None if the object or the bucket is missing, or the key is not valid."""

    def path(self, bucket: str, key: str) -> Path:
        """The local file that holds the object's bytes; only read it. Raises ``NoSuchKey``."""

    def list(self, bucket: str, prefix: str, after: str = "", limit: int = 1000) -> Sequence[ObjectInfo]:
        """Objects with the prefix and key > after, in key order (UTF-8 bytes). Raises ``NoSuchBucket``."""

    def delete(self, bucket: str, key: str) -> None:
        """Remove the object, if it exists."""


# --- keys ------------------------------------------------------------------

JobKeys = Callable[[Job, datetime], Mapping[str, str]]
"""Makes the environment variables with AWS keys for a job's role, valid until the job ends or the time given."""


@dataclass(frozen=True)
class Ports:
    """All ports, and the settings. Thread-safe."""

    store: Store
    runner: Runner
    objects: ObjectStore
    clock: Clock
    config: ServiceConfig
    job_keys: JobKeys = lambda _job, _until: {}

    def now_ms(self) -> int:
        """The current time in Unix milliseconds."""
        return int(self.clock.now().timestamp() * 1000)
