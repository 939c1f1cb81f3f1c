"""Block a job's way to the metadata service of a cloud's machine, which would give the job the machine's role.

This needs no rights over the machine's network. A short-lived container with NET_ADMIN shares the network of the
job's container and changes its routes. The job has no NET_ADMIN and cannot undo that.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from docker import DockerClient
from docker.errors import APIError

from windtunnel_local.runner.docker import blackhole

METADATA = ("169.254.169.254", "169.254.170.2")
"""Addresses of the metadata services of EC2 and most other clouds, and of ECS."""

_DMI = Path("/sys/class/dmi/id/sys_vendor")
_CLOUDS = ("Amazon", "Google", "Microsoft", "Alibaba", "OpenStack", "DigitalOcean", "Hetzner", "OracleCloud")
_log = logging.getLogger(__name__)


def is_of_a_cloud(vendor: Path = _DMI) -> bool:
    """Whether this machine's firmware says that it is a cloud's."""
    try:
        return vendor.read_text().startswith(_CLOUDS)
    except OSError:
        return False


def cut_off(client: DockerClient, container: str, image: str, labels: Mapping[str, str]) -> None:
    """Block the addresses for a running container. Blocks for half a second.

    If that fails, the log says so and the job goes on.

    Args:
        client: of the engine.
        container: the job's.
        image: any with python3.
        labels: of the job. If this process is killed, the container left over is removed with the job's.
    """
    api = client.api
    try:
        made = api.create_container(
            image,
            ["-IS", "-c", Path(blackhole.__file__).read_text(), *METADATA],
            entrypoint=["python3"],
            user="0",
            labels=dict(labels),
            host_config=api.create_host_config(
                network_mode=f"container:{container}", cap_drop=["ALL"], cap_add=["NET_ADMIN"]
            ),
        )
        try:
            api.start(made["Id"])
            code = api.wait(made["Id"])["StatusCode"]
        finally:
            api.remove_container(made["Id"], force=True)
        reason = f"exit code {code}" if code else ""
    except (APIError, OSError) as error:
        reason = str(error)
    if reason:
        _log.warning("%s is not cut off from %s: %s", container, METADATA[0], reason)
