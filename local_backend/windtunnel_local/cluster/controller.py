"""What the Slurm controller of a cluster says of its jobs, where its head node runs."""

from __future__ import annotations

from windtunnel_local.cluster.errors import ClusterError
from windtunnel_local.cluster.nodes import FOLDER_LABEL, NODE_LABEL
from windtunnel_local.cluster.record import ClusterRecord
from windtunnel_local.cluster.slurm_conf import HEAD
from windtunnel_local.runner.docker.client import Engine, engine_errors
from windtunnel_local.service.ground.errors import RunnerUnavailable

_QUESTION = ("scontrol", "--oneliner", "show", "job")


def shown_jobs(cluster: ClusterRecord) -> str:
    """Its lines, one a job that waits, runs, or has ended lately; empty where the head node does not run.

    Raises:
        ClusterError: the controller does not answer.
        RunnerError: the engine fails.
    """
    engine = Engine()
    try:
        with engine_errors(f"ask for the jobs of cluster {cluster.name}"):
            api = engine.client().api
            labels = [f"{FOLDER_LABEL}={cluster.folder}", f"{NODE_LABEL}={HEAD}"]
            found = api.containers(filters={"label": labels, "status": "running"})
            if not found:
                return ""
            made = api.exec_create(found[0]["Id"], list(_QUESTION))
            said = bytes(api.exec_start(made["Id"])).decode(errors="replace")
            code = api.exec_inspect(made["Id"])["ExitCode"]
    except RunnerUnavailable:
        return ""
    finally:
        engine.close()
    if code:
        raise ClusterError(
            f"`{' '.join(_QUESTION)}` failed on the head node of cluster {cluster.name} (exit code {code}): "
            f"{said.strip()}"
        )
    return said
