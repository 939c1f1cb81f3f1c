"""Ask the Slurm controller of a cluster about its jobs."""

from __future__ import annotations

from windtunnel_local.cluster.errors import ClusterError
from windtunnel_local.cluster.nodes import running_filters
from windtunnel_local.cluster.record import ClusterRecord
from windtunnel_local.cluster.slurm_conf import HEAD
from windtunnel_local.runner.docker.client import engine_errors
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
            found = client.api.containers(filters=running_filters(cluster.folder, HEAD))
            if not found:
                return ""
            made = client.api.exec_create(found[0]["Id"], list(_QUESTION))
            said = bytes(client.api.exec_start(made["Id"])).decode(errors="replace")
            code = client.api.exec_inspect(made["Id"])["ExitCode"]
    except RunnerUnavailable:
        return ""
    if code:
        raise ClusterError(
            f"`{' '.join(_QUESTION)}` failed on the head node of cluster {cluster.name} (exit code {code}): "
            f"{said.strip()}"
        )
    return said
