"""A Slurm job as the backend describes it: `windtunnel cluster job NAME JOBID` (docs/reference/slurm_job.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from windtunnel.errors import ConfigurationError
from windtunnel.priceperf.money.node_seconds import NodeTimes, Span
from windtunnel.priceperf.workload.counters import Counters
from windtunnel.rendering import format as fmt

SCHEMA = "windtunnel.slurm_job/1"
RUNS = ("RUNNING", "SUSPENDED", "COMPLETING", "STOPPED")


@dataclass(frozen=True)
class Counted:
    """What one node's first core counted. Seconds are of this machine."""

    node: str
    cores: int
    training_steps: int
    median_step_seconds: float | None
    collective_seconds: float
    input_wait_seconds: float
    failed: bool


@dataclass(frozen=True)
class SlurmJob:
    """One Slurm job, its cluster, and when each node ran.

    ``counters``: of its counters.json; None where nothing ran on a simulated device.
    ``scaledown_idletime_s``: how long dynamic nodes idle before they leave; None: they never leave.
    """

    cluster: str
    region: str
    head_instance_type: str
    scaledown_idletime_s: float | None
    number: int
    name: str
    state: str
    queue: str
    own: tuple[str, ...]
    """The nodes of its last run."""
    began: Span | None
    """Its last run, from start to end; None: it has not begun."""
    nodes: tuple[NodeTimes, ...]
    counted: tuple[Counted, ...]
    counters: Counters | None

    @property
    def runs(self) -> bool:
        """Whether the job still runs: then all figures are of what it has done so far."""
        return self.state in RUNS

    @property
    def compiled_only(self) -> bool:
        """Whether the job did nothing but run its script under neuron_parallel_compile."""
        return self.counters is not None and self.counters.compiled_only

    @property
    def own_nodes(self) -> tuple[NodeTimes, ...]:
        """The nodes of the last run, with their times."""
        return tuple(node for node in self.nodes if node.node in self.own)

    @property
    def instance_types(self) -> tuple[str, ...]:
        """The instance types of its nodes by EC2's names, each once."""
        return tuple(dict.fromkeys(node.instance_type for node in self.own_nodes))

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> SlurmJob:
        """Read the job from the backend's document.

        Raises:
            ConfigurationError: the document is of another version.
            InvalidCounters: the counters are damaged.
        """
        if document.get("schema") != SCHEMA:
            raise ConfigurationError(
                f"a Slurm job has schema {SCHEMA!r}, not {document.get('schema')!r}: SDK and backend are of "
                "different versions. Install both from the same package."
            )
        cluster, job, now = document["cluster"], document["job"], _seconds(document["now"])
        runs = document["runs"]
        return cls(
            cluster=fmt.name(cluster["name"]),
            region=cluster["region"],
            head_instance_type=cluster["head_instance_type"],
            scaledown_idletime_s=cluster["scaledown_idletime_s"],
            number=job["id"],
            name=fmt.name(job["name"]),
            state=fmt.name(job["state"]),
            queue=fmt.name(job["queue"]),
            own=tuple(runs[-1]["nodes"]) if runs else (),
            began=None if not job["started"] else _span(job["started"], job["ended"], now),
            nodes=tuple(_node(node, now) for node in document["nodes"] if node["instance_type"]),
            counted=tuple(Counted(**node) for node in document["counted"]),
            counters=None if (counters := document["counters"]) is None else Counters.read(counters),
        )


def _node(given: Mapping[str, Any], now: float) -> NodeTimes:
    return NodeTimes(
        node=fmt.name(given["node"]),
        instance_type=given["instance_type"],
        capacity_type=given["capacity_type"],
        static=given["static"],
        up=tuple(_span(since, until, now) for since, until in given["up"]),
        jobs=tuple((run["job"], _span(run["started"], run["ended"], now)) for run in given["jobs"]),
    )


def _span(begin: str, end: str | None, now: float) -> Span:
    return Span(_seconds(begin), now if end is None else _seconds(end))


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
