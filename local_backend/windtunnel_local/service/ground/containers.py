"""The containers of a job as data: what a runner starts, and the states and logs that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal


@dataclass(frozen=True)
class Mount:
    """A path of this machine that is mounted in the container at ``target``."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class Keeper:
    """What a warm pool's container needs: its main process is a keeper, which runs the jobs' processes in turn."""

    folder: str
    """The folder on this machine from which the keeper reads its orders; ``<folder>-private`` is the runner's own."""
    target: str
    """The same folder, as the container sees it."""
    environment: Mapping[str, str]
    """Variables of all processes in the container; those of one job come with its order."""


@dataclass(frozen=True)
class Forward:
    """A loopback port of this machine that is forwarded to the same loopback port inside the container."""

    port: int
    socket: str
    """A Unix socket on this machine, alone in its folder, on which the same server listens as on the port."""


@dataclass(frozen=True)
class ContainerPlan:
    """One host of a job, as data: all that a runner needs to start its container."""

    job: str
    host: str
    image: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[Mount, ...]
    user: str | None
    """``uid:gid`` that runs the job and owns everything it writes; None: the image's user."""
    network: str | None
    """The job's own network (several hosts), ``"none"``, or None: a network that reaches no other container."""
    memory_bytes: int | None
    shm_bytes: int
    entrypoint: tuple[str, ...] | None = None
    """Replaces the image's entry point; None keeps it."""
    isolated: bool = False
    """EnableNetworkIsolation: no traffic except between the hosts of the job's own network."""
    forward: Forward | None = None
    """Set only if the job is not isolated."""
    port: int | None = None
    """The port at which the container answers, reachable from this machine only: see `Runner.address`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    keeper: Keeper | None = None
    """If set, the container stays when the job's process has ended, until `Runner.remove`."""


@dataclass(frozen=True)
class JobPlan:
    """All containers of a job; they start together and are removed together."""

    job: str
    containers: tuple[ContainerPlan, ...]


@dataclass(frozen=True)
class ContainerState:
    """The state of one host's container, as the engine reports it."""

    status: Literal["absent", "created", "running", "exited"]
    exit_code: int | None = None
    oom_killed: bool = False
    started_at: datetime | None = None
    finished_at: datetime | None = None
    lost: bool = False
    """Whether it exited because the engine or the machine went down, so that its exit code says nothing."""
    why: str | None = None
    """Why it ended so and what to do, if more is known than the exit code tells."""
    memory_bytes: int | None = None
    """The container's memory limit; None: it has none, or the engine does not say."""


MAX_LINE_BYTES = 1 << 20
"""A longer line is delivered in pieces, so that a job which never ends its line cannot fill our memory."""


@dataclass(frozen=True)
class LogLine:
    """One line a container printed. ``timestamp_ms``: Unix milliseconds, UTC."""

    timestamp_ms: int
    text: str


@dataclass(frozen=True)
class LogBatch:
    """Lines in order, and the cursor with which reading resumes right after the last of them."""

    lines: tuple[LogLine, ...]
    cursor: str
