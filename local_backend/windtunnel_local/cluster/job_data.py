"""One document about one Slurm job: what Slurm says, when nodes ran, what the simulator counted.

``windtunnel cluster report`` makes the bill and the report from it; docs/reference/slurm_job.md explains each member.
There are no prices in it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from windtunnel.priceperf.errors import InvalidCounters
from windtunnel.priceperf.instances import CATALOG
from windtunnel.priceperf.workload.counters import InstanceGroup, Seconds
from windtunnel_local.cluster import node_log
from windtunnel_local.cluster.configuration import ClusterConfiguration
from windtunnel_local.cluster.errors import ClusterError
from windtunnel_local.cluster.layout import Layout
from windtunnel_local.cluster.slurm_jobs import JobRun, read_jobs
from windtunnel_local.cluster.untrusted_files import folders_in
from windtunnel_local.service.observed import step_sums
from windtunnel_local.service.observed.counter_records import number
from windtunnel_local.service.observed.metering import Ran, RankCounters, document, read_counters

SCHEMA = "windtunnel.slurm_job/1"


class JobNotFound(ClusterError):
    """Slurm knows no such job."""


def job_document(
    folder: Path, configuration: ClusterConfiguration, job: str, shown: str, now: datetime
) -> dict[str, Any]:
    """The document of a job of the cluster in ``folder``.

    Args:
        folder: the cluster's.
        configuration: in force there.
        job: its number; of a task of an array as squeue names it, too: ``2_0``.
        shown: what ``scontrol --oneliner show job`` printed; empty if the head node does not run.
        now: taken as the end of what still runs.

    Raises:
        JobNotFound: neither the controller nor the file of completed jobs has it.
        ClusterError: the job's script has damaged the files of counters.
    """
    layout = Layout(folder)
    runs = _runs(layout, shown)
    own = [run for run in runs if job in (str(run.number), run.task)]
    if not own:
        numbers = {run.number: run.task or str(run.number) for run in runs}
        known = ", ".join(numbers[number] for number in sorted(numbers)) or "none yet"
        raise JobNotFound(f"Cluster {folder.name} has no job {job}. Its jobs: {known}.")
    last = own[-1]
    counted = layout.jobs / str(last.number)
    # Slurm may have forgotten the nodes: each has left a folder of its name.
    nodes = last.nodes or sorted(entry.name for entry in folders_in(counted))
    by_node = {node: read_counters(counted / node) for node in nodes}
    return {
        **bare_document(folder, configuration, own, runs, now),
        "counted": [_counted(node, ranks) for node, ranks in by_node.items() if ranks],
        "counters": _counters(
            f"{folder.name}/{last.number}", last, by_node, configuration.instance_types, now
        ),
    }


def _runs(layout: Layout, shown: str) -> list[JobRun]:
    """The runs of all jobs, oldest first. Ended jobs are in the file, and for a while the controller knows them too."""
    try:
        completed = read_jobs(layout.completed_jobs.read_text(errors="replace"))
    except FileNotFoundError:
        completed = []
    ended = {(run.number, run.started) for run in completed}
    more = [run for run in read_jobs(shown) if (run.number, run.started) not in ended]
    return [*completed, *more]


def bare_document(
    folder: Path,
    configuration: ClusterConfiguration,
    own: Sequence[JobRun],
    runs: Sequence[JobRun],
    now: datetime,
) -> dict[str, Any]:
    """The document without counters: enough for a bill. ``own``: those of all ``runs`` that are the job's."""
    return {
        "schema": SCHEMA,
        "now": _text(now),
        "cluster": _cluster(folder.name, configuration),
        "job": _job(own[-1]),
        "runs": [_run(run) for run in own],
        "nodes": _nodes(configuration, folder, runs),
        "counted": [],
        "counters": None,
    }


def _cluster(name: str, configuration: ClusterConfiguration) -> dict[str, Any]:
    minutes = configuration.scaledown_idletime_minutes
    return {
        "name": name,
        "region": configuration.region,
        "head_instance_type": configuration.head_instance_type,
        "scaledown_idletime_s": None if minutes < 0 else minutes * 60,
    }


def _job(run: JobRun) -> dict[str, Any]:
    return {
        "id": run.number,
        "name": run.name,
        "state": run.state,
        "queue": run.queue,
        "submitted": _text(run.submitted),
        "started": _text(run.started),
        "ended": _text(run.ended),
    }


def _run(run: JobRun) -> dict[str, Any]:
    return {
        "job": run.number,
        "nodes": list(run.nodes),
        "started": _text(run.started),
        "ended": _text(run.ended),
    }


def _nodes(configuration: ClusterConfiguration, folder: Path, runs: Sequence[JobRun]) -> list[dict[str, Any]]:
    """Each node that has run: its instance type, its times, and the jobs on it."""
    known = {
        node.name: (queue, resource.instance_type, node.static)
        for queue, resource, node in configuration.nodes()
    }
    up: dict[str, list[node_log.UpTime]] = {}
    for time in node_log.up_times(node_log.read(folder)):
        up.setdefault(time.node, []).append(time)
    names = dict.fromkeys([*up, *(node for run in runs if run.started for node in run.nodes)])
    found = []
    for name in names:
        queue, kind, static = known.get(name, (None, None, "-st-" in name))
        found.append(
            {
                "node": name,
                "instance_type": up[name][-1].instance_type if name in up else kind,
                "capacity_type": "ONDEMAND" if queue is None else queue.capacity_type,
                "static": static,
                "up": [[_text(time.since), _text(time.until)] for time in up.get(name, ())],
                "jobs": [_run(run) for run in runs if run.started and name in run.nodes],
            }
        )
    return found


def _counted(node: str, ranks: Sequence[RankCounters]) -> dict[str, Any]:
    """The counters of one node's cores, of the program that trained longest there. Seconds are this machine's."""
    first = max(ranks, key=lambda one: (not one.program.trial, len(one.steps)))
    training = [
        step for step in step_sums.with_their_batches(first.steps, first.graphs) if step.get("optimizer")
    ]
    seconds = [max(0.0, number(step, "seconds") - number(step, "compile_seconds")) for step in training]
    return {
        "node": node,
        "cores": len({one.rank for one in ranks}),
        "training_steps": len(training),
        "median_step_seconds": statistics.median(seconds) if seconds else None,
        "collective_seconds": sum(number(step, "collective_seconds") for step in training),
        "input_wait_seconds": sum(number(step, "input_wait_seconds") for step in training),
        "failed": any(end.get("exit") == "error" for one in ranks for end in one.ends),
    }


def _counters(
    name: str,
    run: JobRun,
    by_node: Mapping[str, Sequence[RankCounters]],
    types: Mapping[str, str],
    now: datetime,
) -> dict[str, Any] | None:
    """The job's counters.json; None if nothing ran on a simulated device, or the kind of node is unknown."""
    counted = {node: ranks for node, ranks in by_node.items() if ranks}
    kinds = [f"ml.{types[node]}" for node in counted if node in types]
    if not kinds or any(kind not in CATALOG for kind in kinds):
        return None
    groups = tuple(
        InstanceGroup(instance_type=kind, instance_count=kinds.count(kind)) for kind in dict.fromkeys(kinds)
    )
    ranks = [one for each in counted.values() for one in each]
    began = None if run.started is None else run.started.timestamp()
    ends = [number(step, "time") for one in ranks for step in one.steps if step.get("time")]
    ran = Ran(
        name=name,
        instance=CATALOG[kinds[0]],
        instance_count=len(counted),
        instance_groups=groups if len(groups) > 1 else None,
        seconds=Seconds(
            training_total=None
            if run.started is None
            else ((run.ended or now) - run.started).total_seconds(),
            first_step_after=max(0.0, min(ends) - began) if ends and began is not None else None,
        ),
    )
    try:
        return document(ran, ranks).to_dict()
    except InvalidCounters as error:
        raise ClusterError(f"What job {name} counted cannot be read: {error}.") from error


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
