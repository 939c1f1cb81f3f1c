"""Ask the Slurm controller of a cluster about its jobs."""

from __future__ import annotations

from windtunnel_local.cluster.errors import ClusterError
from windtunnel_local.cluster.nodes import running
from windtunnel_local.cluster.record import ClusterRecord
from windtunnel_local.cluster.slurm_conf import HEAD
from windtunnel_local.runner.docker.client import engine_errors, run_in
from windtunnel_local.runner.docker.image import connected
from windtunnel_local.service.ground.errors import RunnerUnavailable

_QUESTION = ("scontrol", "--oneliner", "show", "job")


def shown_jobs(cluster: ClusterRecord) -> str:
    """One line for each job that waits, runs or has ended lately; empty if the head node does not run.

    Raises:
        ClusterError: the controller does not answer.
        RunnerError: the engine fails.
    """
    try:
        with connected(None) as client, engine_errors(f"ask for the jobs of cluster {cluster.name}"):
            head = running(client.api, cluster.folder, HEAD)
            if head is None:
                return ""
            code, said = run_in(client.api, head, _QUESTION)
    except RunnerUnavailable:
        return ""
    if code:
        raise ClusterError(
            f"`{' '.join(_QUESTION)}` failed on the head node of cluster {cluster.name} (exit code {code}): "
            f"{said.strip()}"
        )
    return said
