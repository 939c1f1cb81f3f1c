"""Read the state of a cluster from its folder alone: nothing is written, called or started.

That takes milliseconds, even if no engine answers. For what files do not tell (why a job waits, which jobs of `srun`
alone wait) ask Slurm's controller: `squeue`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from windtunnel_local.cluster import answers, node_log, record
from windtunnel_local.cluster.configuration import ClusterConfiguration, read
from windtunnel_local.cluster.errors import ClusterError, ClusterNotFound
from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.record import WORKING, ClusterRecord, ClusterState
from windtunnel_local.cluster.seen_jobs import ended_jobs, going_jobs
from windtunnel_local.cluster.slurm_jobs import JobRun
from windtunnel_local.cluster.untrusted_files import text_of


@dataclass(frozen=True)
class ResourceSeen:
    """Nodes of one instance type in a queue: ``static`` of them always run, at most ``most`` can."""

    name: str
    instance_type: str
    static: int
    most: int
    up: int


@dataclass(frozen=True)
class QueueSeen:
    """A queue. ``capacity_type``: as in `configuration.Queue`."""

    name: str
    capacity_type: str
    resources: tuple[ResourceSeen, ...]

    @property
    def up(self) -> int:
        """How many nodes run."""
        return sum(each.up for each in self.resources)

    @property
    def most(self) -> int:
        """How many nodes can run."""
        return sum(each.most for each in self.resources)


@dataclass(frozen=True)
class NodeSeen:
    """A running node, or a static one that should run (``since`` is None then). ``jobs``: those that began there."""

    name: str
    queue: str
    instance_type: str
    static: bool
    since: datetime | None
    jobs: tuple[int, ...]


@dataclass(frozen=True)
class ClusterSeen:
    """One cluster at one moment. Equal to an earlier one if nothing has changed."""

    folder: Path
    state: ClusterState | None
    """None: the record is damaged; ``problem`` says how."""
    problem: str
    configuration: ClusterConfiguration | None
    text: str
    """Text of the configuration file; of a very long one its beginning."""
    forsaken: bool
    """Whether its background process was killed; then the log of nodes may be out of date."""
    queues: tuple[QueueSeen, ...]
    nodes: tuple[NodeSeen, ...]
    """The running nodes and the static ones, in the order of the queues."""
    runs: tuple[JobRun, ...]
    """All runs of all jobs, ended ones first."""
    older: bool
    """Whether there are older ended jobs than these."""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def fleet_status(self) -> str:
        """The fleet's state, such as RUNNING; UNKNOWN if it is not known."""
        return "UNKNOWN" if self.state is None else answers.fleet_status(self.state)

    @property
    def created(self) -> datetime | None:
        with suppress(ValueError, AttributeError):
            return datetime.fromisoformat(self.state.created.replace("Z", "+00:00")) if self.state else None
        return None

    @property
    def jobs(self) -> list[JobRun]:
        """The last run of each job, the newest job first."""
        return sorted({run.number: run for run in self.runs}.values(), key=lambda run: -run.number)

    @property
    def running(self) -> int:
        """How many jobs run, as far as the files tell."""
        return sum(run.started is not None and run.ended is None for run in self.jobs)

    @property
    def pending(self) -> int:
        """How many jobs wait, as far as the files tell."""
        return sum(run.started is None and run.ended is None for run in self.jobs)


def every(home: Path) -> tuple[ClusterSeen, ...]:
    """All clusters of a home, by name."""
    found = (_seen(each) for each in record.every(home))
    return tuple(each for each in found if each is not None)


def one(home: Path, name: str) -> ClusterSeen | None:
    """The cluster of that name; None: there is none."""
    try:
        return _seen(record.find(home, name))
    except ClusterNotFound:
        return None


def _seen(cluster: ClusterRecord) -> ClusterSeen | None:
    state, configuration, problem = None, None, ""
    layout = Layout(cluster.folder)
    text = text_of(cluster.configuration_file)
    try:
        state = cluster.state
        configuration = _configuration(text, state.region)
    except ClusterNotFound:
        return None
    except ClusterError as error:
        problem = str(error)
    up = _up(cluster.folder)
    ended, whole = ended_jobs(layout)
    going = tuple(going_jobs(layout, ended, up, every_job=whole))
    queues: tuple[QueueSeen, ...] = ()
    nodes: tuple[NodeSeen, ...] = ()
    if configuration is not None:
        queues = tuple(_queues(configuration, up))
        nodes = tuple(_nodes(configuration, up, going))
        queue_of = {node.name: node.queue for node in nodes}
        going = tuple(
            replace(run, queue=queue_of.get(run.nodes[0], "")) if run.nodes else run for run in going
        )
    return ClusterSeen(
        folder=cluster.folder,
        state=state,
        problem=problem,
        configuration=configuration,
        text=text,
        forsaken=_is_forsaken(layout, state),
        queues=queues,
        nodes=nodes,
        runs=(*ended, *going),
        older=not whole,
    )


@lru_cache(maxsize=32)
def _configuration(text: str, region: str) -> ClusterConfiguration:
    return read(text, "configuration.yaml", region)


# --- nodes ---


def _up(folder: Path) -> Mapping[str, datetime]:
    """By running node: since when it runs."""
    try:
        noted = (folder / node_log.FILE).stat()
    except OSError:
        return {}
    return _up_as_noted(folder, noted.st_size, noted.st_mtime_ns)


@lru_cache(maxsize=32)
def _up_as_noted(folder: Path, _size: int, _changed_ns: int) -> Mapping[str, datetime]:
    """As `_up`, from the log of nodes; cached for each size and time of the file."""
    return {time.node: time.since for time in node_log.up_times(node_log.read(folder)) if time.until is None}


def _queues(configuration: ClusterConfiguration, up: Mapping[str, datetime]) -> Iterator[QueueSeen]:
    for queue in configuration.queues:
        resources = tuple(
            ResourceSeen(
                each.name,
                each.instance_type,
                each.min_count,
                each.max_count,
                sum(node.name in up for node in queue.nodes(each)),
            )
            for each in queue.compute_resources
        )
        yield QueueSeen(queue.name, queue.capacity_type, resources)


def _nodes(
    configuration: ClusterConfiguration, up: Mapping[str, datetime], going: tuple[JobRun, ...]
) -> Iterator[NodeSeen]:
    for queue, resource, node in configuration.nodes():
        if node.static or node.name in up:
            jobs = tuple(run.number for run in going if node.name in run.nodes)
            yield NodeSeen(
                node.name, queue.name, resource.instance_type, node.static, up.get(node.name), jobs
            )


def _is_forsaken(layout: Layout, state: ClusterState | None) -> bool:
    """Whether the background process should run and does not. That of a failed cluster has ended for good.

    The lock is only looked at, and not taken: a process that starts meanwhile would find it taken, and end.
    """
    if state is None or (state.status.endswith("_FAILED") and state.status not in WORKING):
        return False
    try:
        inode, locks = layout.lock.stat().st_ino, Path("/proc/locks").read_text()
    except OSError:
        return not layout.lock.exists()
    return not any("FLOCK" in line and f":{inode} " in line for line in locks.splitlines())
