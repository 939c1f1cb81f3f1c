"""Log in to a node: by `docker exec` to the head node, and from there by ssh, as its user would."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence

from windtunnel_local.cluster.errors import ClusterError
from windtunnel_local.cluster.layout import PROGRAMS
from windtunnel_local.cluster.record import ClusterRecord
from windtunnel_local.cluster.slurm_conf import HEAD


def enter(cluster: ClusterRecord, node: str | None, words: Sequence[str]) -> int:
    """Replace this process by a shell or a command in a node; this process gets its exit code.

    Args:
        cluster: in a state that takes jobs.
        node: its name; None: the head node.
        words: arguments of ssh behind the host: options, a command.

    Raises:
        ClusterError: the node does not run, or there is no `docker` command.
    """
    command = ssh_command(cluster, node, words)
    if shutil.which(command[0]) is None:
        raise ClusterError(
            "A node is entered with the command `docker`, which is not in PATH. Install Docker's CLI."
        )
    sys.stdout.flush()
    os.execvp(command[0], command)  # noqa: S606  becomes that process; no shell wanted


def ssh_command(cluster: ClusterRecord, node: str | None, words: Sequence[str]) -> list[str]:
    """The command line of `enter`.

    Raises:
        ClusterError: the node does not run.
    """
    node = node or HEAD
    known = [HEAD, *cluster.configuration().instance_types]
    if node not in known:
        raise ClusterError(f"Cluster {cluster.name} has no node {node}. Its nodes: {', '.join(known)}.")
    head = _running(cluster, HEAD)
    if node != HEAD:
        _running(cluster, node)
    terminal = ["-t"] if sys.stdin.isatty() and sys.stdout.isatty() else []
    return [
        *("docker", "exec", "-i", *terminal, head, f"{PROGRAMS}/as-user.sh"),
        *("ssh", *terminal, "-o", "LogLevel=ERROR", node, *words),
    ]


def _running(cluster: ClusterRecord, node: str) -> str:
    """The name of a running node's container."""
    # Not above, as in `fleet.client`.
    from windtunnel_local.cluster.nodes import running
    from windtunnel_local.runner.docker.client import engine_errors
    from windtunnel_local.runner.docker.image import connected

    with connected(None) as client, engine_errors(f"look for node {node}"):
        found = running(client.api, cluster.folder, node)
    if found is None:
        why = f"(cluster {cluster.status}, compute fleet {cluster.fleet_status})"
        hint = (
            ""
            if node == HEAD
            else " A dynamic node comes when a job waits for it; `sinfo` on the head node says more."
        )
        raise ClusterError(f"Node {node} of cluster {cluster.name} does not run {why}.{hint}")
    return found
