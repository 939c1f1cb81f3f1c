"""Node-seconds of a cluster, by use. EC2 bills a node from its start to its end, whether it works or not.

Times are seconds of any clock. A static node runs as long as the cluster; a dynamic node starts for a job and stops
after some idle time. The idle time of a dynamic node before its first job, and after a job until the next job or the
node's end, is counted for that job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

_CLOCKS_APART_S = 2.0
"""Tolerance between times: Slurm's are whole seconds, and a node's state is recorded a moment after it changed."""


class Span(NamedTuple):
    """A span of time."""

    begin: float
    end: float

    @property
    def seconds(self) -> float:
        """Its length, never negative."""
        return max(0.0, self.end - self.begin)


@dataclass(frozen=True)
class NodeTimes:
    """When a node ran, and its jobs by number. ``up``: empty if not recorded; then the times of its jobs count."""

    node: str
    instance_type: str
    capacity_type: str
    static: bool
    up: tuple[Span, ...]
    jobs: tuple[tuple[int, Span], ...]


@dataclass(frozen=True)
class JobSeconds:
    """Node-seconds of one job. ``coming`` and ``leaving``: idle time of dynamic nodes before and after the job."""

    job: float
    coming: float
    leaving: float

    @property
    def idle(self) -> float:
        """Node-seconds that are billed although no job runs."""
        return self.coming + self.leaving


@dataclass(frozen=True)
class ClusterSeconds:
    """Node-seconds of a cluster until now."""

    up: float
    busy: float
    idle_static: float
    idle_dynamic: float


def of_job(nodes: Iterable[NodeTimes], job: int) -> JobSeconds:
    """Node-seconds of one job over all times that it ran (a job may be requeued)."""
    ran = coming = leaving = 0.0
    for node in nodes:
        for number, span in node.jobs:
            if number != job:
                continue
            ran += span.seconds
            if not node.static and node.up:
                before, after = _around(node, span)
                coming, leaving = coming + before, leaving + after
    return JobSeconds(ran, coming, leaving)


def of_cluster(nodes: Iterable[NodeTimes]) -> ClusterSeconds:
    """Node-seconds of all nodes so far."""
    up = busy = static = dynamic = 0.0
    for node in nodes:
        jobs = joined(span for _, span in node.jobs)
        ran = _seconds(node.up or jobs)
        worked = min(ran, _seconds(jobs))
        up, busy = up + ran, busy + worked
        if node.static:
            static += ran - worked
        else:
            dynamic += ran - worked
    return ClusterSeconds(up, busy, static, dynamic)


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The union of the spans, sorted and without overlaps."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.begin <= found[-1].end:
            found[-1] = Span(found[-1].begin, max(found[-1].end, span.end))
        else:
            found.append(span)
    return tuple(found)


def _around(node: NodeTimes, span: Span) -> tuple[float, float]:
    """Idle seconds of a node before and after one span of a job on it."""
    up = next(
        (
            each
            for each in node.up
            if each.begin - _CLOCKS_APART_S <= span.begin <= each.end + _CLOCKS_APART_S
        ),
        None,
    )
    if up is None:
        return 0.0, 0.0
    others = [other for _, other in node.jobs if other != span]
    first = not any(up.begin - _CLOCKS_APART_S <= other.begin < span.begin for other in others)
    until = min((other.begin for other in others if other.begin >= span.end), default=up.end)
    covered = any(other.begin < span.end < other.end for other in others)
    before = max(0.0, span.begin - up.begin) if first else 0.0
    return before, 0.0 if covered else max(0.0, min(until, up.end) - span.end)


def _seconds(spans: Sequence[Span]) -> float:
    return sum(span.seconds for span in spans)
