"""Cuts jobs off from the metadata service of a cloud's machine, which would give them the machine's own role.

Without rights over this machine's network: a container that lives for a moment shares the network of the job's, with
the right to change it, which the job itself does not have and so cannot use to undo it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from docker import DockerClient
from docker.errors import APIError

from windtunnel_local.runner.docker import blackhole

METADATA = ("169.254.169.254", "169.254.170.2")
"""EC2's and most other clouds', and that of ECS."""

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
    """Of a running container. Blocks for half a second.

    Where it cannot be done the job goes on, and the log says so.

    Args:
        client: of the engine.
        container: the job's.
        image: any with python3.
        labels: the job's: what is left of this by a crash goes with the job's own containers.
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
