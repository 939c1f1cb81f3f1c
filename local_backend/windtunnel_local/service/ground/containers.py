"""The containers of a job as data: what a runner starts, and what it says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal


@dataclass(frozen=True)
class Mount:
    """A host path seen inside the container."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class Keeper:
    """What a container needs to outlive its job: it runs a keeper, which runs one job's process after the other."""

    folder: str
    """Where orders are left for it, on this machine; ``<folder>-private`` beside it is the runner's own."""
    target: str
    """The same, as the container sees it."""
    environment: Mapping[str, str]
    """What the container's processes share; a job's own variables come with its order."""


@dataclass(frozen=True)
class Forward:
    """A port of this machine's loopback that a container finds on its own."""

    port: int
    socket: str
    """A Unix socket on this machine, alone in its folder, behind which the same answers as at the port."""


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
    """A network of the job's own (several hosts), ``"none"``, or None: one with no way to other containers."""
    memory_bytes: int | None
    shm_bytes: int
    entrypoint: tuple[str, ...] | None = None
    """Replaces the image's entry point; None keeps it."""
    isolated: bool = False
    """No traffic in or out, but for calls between the hosts of the job's own network."""
    forward: Forward | None = None
    """Set only where the job is not isolated."""
    port: int | None = None
    """At which it is called, from this machine alone: see `Runner.address`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    keeper: Keeper | None = None
    """Set: the container is kept when its process has ended, until `Runner.remove`."""


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
    lost: bool = False
    """Whether it exited because the engine or the machine did: no doing of the script, whatever its code."""
    why: str | None = None
    """How it was lost or killed, and what to do, where the engine knows more than the exit code says."""


MAX_LINE_BYTES = 1 << 20
"""A longer line is delivered in pieces: a job that never ends its line must not fill our memory."""


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
