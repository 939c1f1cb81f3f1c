"""The settings that a cluster takes from this machine and from the shell that made it.

They are stored, so that the background process has the same ones whenever it is started again.

    WINDTUNNEL_CLUSTER_IDLE_SECONDS  dynamic nodes leave after so long (ScaledownIdletime of the configuration)
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from windtunnel.atomic_file import replace_whole
from windtunnel_local.cluster.errors import ClusterError
from windtunnel_local.cluster.image import cluster_image_tag
from windtunnel_local.runner.variables import Variables
from windtunnel_local.service.ground import machine_memory
from windtunnel_local.settings import Settings

_DEFAULT_UID = 1000
_SIMULATOR_VARIABLES = ("WINDTUNNEL_LOCAL_CORES", "WINDTUNNEL_FRAMEWORK_VERSION", "WINDTUNNEL_REHEARSE_STEPS")
"""Variables of the shell that makes the cluster which its nodes get."""
USERS: Mapping[str, str] = {"alinux": "ec2-user", "ubuntu": "ubuntu", "rhel": "ec2-user", "rocky": "rocky"}
"""The user of AWS's machine images, by the beginning of the operating system's name."""


@dataclass(frozen=True)
class Machine:
    """``uid``, ``gid``: of the nodes' user, so that their files are the caller's; bytes, seconds."""

    training_image: str
    uid: int
    gid: int
    memory_bytes: int
    """Most memory of one node, bytes."""
    idle_s: float | None = None
    """Idle seconds after which dynamic nodes stop; None: as the configuration says."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """The simulator's settings, for all compute nodes."""

    @property
    def image(self) -> str:
        return cluster_image_tag(self.training_image)


def machine_of(settings: Settings) -> Machine:
    """The settings from a shell's variables.

    Raises:
        SettingsError: a value that cannot be used.
    """
    given = Variables(settings.environment)
    root = os.getuid() == 0
    simulator = {name: given.text(name) for name in _SIMULATOR_VARIABLES}
    return Machine(
        training_image=settings.image,
        uid=_DEFAULT_UID if root else os.getuid(),
        gid=_DEFAULT_UID if root else os.getgid(),
        memory_bytes=int(settings.memory_gib * 2**30)
        if settings.memory_gib
        else machine_memory.spare_bytes(),
        idle_s=given.number("WINDTUNNEL_CLUSTER_IDLE_SECONDS", 0) or None,
        environment={name: value for name, value in simulator.items() if value},
    )


def keep(path: Path, machine: Machine) -> Machine:
    """Write the settings down and return them; if an earlier process did, return what that wrote.

    Raises:
        ClusterError: what was written cannot be read.
    """
    try:
        return Machine(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        replace_whole(path, json.dumps(asdict(machine), indent=2) + "\n")
        return machine
    except (ValueError, TypeError) as error:
        raise ClusterError(f"{path} is damaged ({error}): remove it, then run the command again.") from error


def user_of(os_name: str) -> str:
    """The name of the nodes' user. ``os_name``: ParallelCluster's, such as ``ubuntu2204``."""
    return next(user for begins, user in USERS.items() if os_name.startswith(begins))
