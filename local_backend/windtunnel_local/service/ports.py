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
from typing import BinaryIO, Literal, Protocol

from windtunnel_local.service.model import Job, JobQuery

Progress = Callable[[str], None]
"""Called with one human-readable line; returns quickly.

It may raise, to abandon what is under way (the job was stopped meanwhile): let the exception pass.
"""


class Clock(Protocol):
    """Wall clock and monotonic clock."""

    def now(self) -> datetime:
        """The current time, timezone-aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards; for measuring intervals."""
        ...


# --- containers -----------------------------------------------------------


@dataclass(frozen=True)
class Mount:
    """A host path seen inside the container."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class ContainerPlan:
    """One host of a job, as data: what a runner needs to start it and nothing else."""

    job: str
    host: str
    image: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    user: str | None
    """``uid:gid`` that owns everything the job writes."""
    network: str | None
    """A network of the job's own (several hosts), ``"none"`` (isolation), or None: the engine's default."""
    memory_bytes: int | None
    shm_bytes: int
    entrypoint: tuple[str, ...] | None = None
    """Replaces the image's entry point; None keeps it."""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class JobPlan:
    """All containers of a job; they start together and are removed together."""

    job: str
    containers: tuple[ContainerPlan, ...]


@dataclass(frozen=True)
class ContainerState:
    """What the engine says of one host's container."""

    status: Literal["absent", "created", "running", "exited"]
    exit_code: int | None = None
    oom_killed: bool = False
    started_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True)
class LogLine:
    """One line a container printed. ``timestamp_ms``: Unix milliseconds, UTC."""

    timestamp_ms: int
    text: str


@dataclass(frozen=True)
class LogBatch:
    """Lines in order, and the cursor that resumes right behind the last of them."""

    lines: tuple[LogLine, ...]
    cursor: str


class Runner(Protocol):
    """Runs the containers of a job. All calls block; all are safe from several threads."""

    name: str

    def ensure_image(self, image: str, progress: Progress) -> None:
        """Make sure the image is there; build ours when it is missing. Idempotent.

        Raises:
            RunnerUnavailable: no engine; the message names the fix.
            ImageNotFound: a foreign image that the engine does not have.
        """
        ...

    def start(self, plan: JobPlan) -> None:
        """Create the network and start every container. Idempotent: what runs already is kept."""
        ...

    def state(self, job: str, host: str) -> ContainerState:
        """The state of one host's container; ``absent`` when there is none."""
        ...

    def wait(self, job: str, host: str, timeout_s: float) -> ContainerState:
        """Return as soon as the container has exited, or its state after ``timeout_s``."""
        ...

    def logs(self, job: str, host: str, cursor: str | None) -> Iterator[LogBatch]:
        """Follow one host's output from ``cursor`` (None: its start) until it has exited and all is read.

        Every line is delivered exactly once over any number of resumptions. A batch
        comes within 0.1 s of being printed. Stderr and stdout share one order.
        """
        ...

    def terminate(self, job: str, host: str) -> None:
        """Send SIGTERM. A container that is gone is no error."""
        ...

    def kill(self, job: str, host: str) -> None:
        """Send SIGKILL. A container that is gone is no error."""
        ...

    def remove(self, job: str) -> None:
        """Remove the job's containers and network, by force. Idempotent."""
        ...

    def jobs(self) -> set[str]:
        """Names of this home's jobs that have a container in any state."""
        ...


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
    job: str
    host: str
    created_ms: int
    first_event_ms: int | None
    last_event_ms: int | None
    last_ingestion_ms: int | None
    events: int


class Store(Protocol):
    """Jobs, tags and logs, durable when a call returns. Safe from several threads."""

    def insert_job(self, job: Job) -> None:
        """Record a new job; raises ``JobExists``."""
        ...

    def get_job(self, name: str) -> Job | None:
        """The job, or None."""
        ...

    def update_job(self, job: Job) -> None:
        """Replace the record of an existing job; raises ``JobNotFound``."""
        ...

    def delete_job(self, name: str) -> None:
        """Remove the job with its tags and logs; raises ``JobNotFound``."""
        ...

    def list_jobs(self, query: JobQuery) -> tuple[Sequence[Job], str | None]:
        """One page and the token of the next (None at the end)."""
        ...

    def unfinished_jobs(self) -> Sequence[Job]:
        """Jobs not in a terminal status, oldest first."""
        ...

    def set_tags(self, arn: str, tags: Mapping[str, str]) -> None:
        """Add or overwrite tags."""
        ...

    def remove_tags(self, arn: str, keys: Sequence[str]) -> None:
        """Remove tags; unknown keys are no error."""
        ...

    def tags(self, arn: str) -> Mapping[str, str]:
        """Tags in order of their keys."""
        ...

    def open_log_stream(self, job: str, host: str, name: str, created_ms: int) -> None:
        """Create the stream if it is not there. Idempotent."""
        ...

    def append_log(self, stream: str, batch: LogBatch, ingestion_ms: int) -> None:
        """Append lines and their cursor in one transaction: a crash keeps both or neither."""
        ...

    def log_cursor(self, stream: str) -> str | None:
        """Where `Runner.logs` resumes for this stream."""
        ...

    def log_streams(self, prefix: str) -> Sequence[LogStream]:
        """Streams whose name starts with ``prefix``, by name."""
        ...

    def read_log(
        self, stream: str, first: int, limit: int, start_ms: int | None = None, end_ms: int | None = None
    ) -> Sequence[LogEvent]:
        """Up to ``limit`` events with sequence >= first and start_ms <= timestamp < end_ms, in order."""
        ...

    def read_log_before(
        self, stream: str, before: int, limit: int, start_ms: int | None = None, end_ms: int | None = None
    ) -> Sequence[LogEvent]:
        """The last ``limit`` events with sequence < before and start_ms <= timestamp < end_ms, in order."""
        ...


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
        ...

    def has_bucket(self, bucket: str) -> bool:
        """Whether it exists."""
        ...

    def put(
        self, bucket: str, key: str, data: BinaryIO, metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        """Store the stream's rest. Raises ``NoSuchBucket``."""
        ...

    def put_file(self, bucket: str, key: str, path: Path) -> ObjectInfo:
        """Store a copy of a local file. Raises ``NoSuchBucket``."""
        ...

    def head(self, bucket: str, key: str) -> ObjectInfo | None:
        """The object's description, or None."""
        ...

    def path(self, bucket: str, key: str) -> Path:
        """The object's bytes as a local file, to be read only. Raises ``NoSuchKey``."""
        ...

    def list(self, bucket: str, prefix: str, after: str = "", limit: int = 1000) -> Sequence[ObjectInfo]:
        """Objects with the prefix and key > after, in key order (UTF-8 bytes). Raises ``NoSuchBucket``."""
        ...

    def delete(self, bucket: str, key: str) -> None:
        """Remove it; a missing one is no error."""
        ...
