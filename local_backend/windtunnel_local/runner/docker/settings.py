"""Settings of the `docker` runner from the environment, besides those of every runner.

    WINDTUNNEL_BASE_IMAGE       what the training image is built on (chosen by what can be reached)
    WINDTUNNEL_TORCH_INDEX_URL  an index to prefer for torch when it answers (PyTorch's own, of CPU builds)

`endpoint` reads DOCKER_HOST and its companions; `host_network` reads proxies, CA bundle and pip's options.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from windtunnel_local.runner.host_network import HostNetwork, host_network
from windtunnel_local.runner.runner_kind import RunnerSettings
from windtunnel_local.runner.variables import Variables

_TORCH_INDEX_URL = "https://download.pytorch.org/whl/cpu"


@dataclass(frozen=True)
class DockerSettings:
    """Home and image of the backend, and what building the image and running jobs need of this host."""

    home: Path
    image: str
    base_image: str | None = None
    torch_index_url: str | None = field(default=None, repr=False)  # may carry a password
    network: HostNetwork = field(default_factory=HostNetwork, repr=False)  # proxies and indexes may, too


def docker_settings(settings: RunnerSettings) -> DockerSettings:
    given = Variables(settings.environment)
    return DockerSettings(
        settings.home,
        settings.image,
        given.text("WINDTUNNEL_BASE_IMAGE"),
        given.text("WINDTUNNEL_TORCH_INDEX_URL") or _TORCH_INDEX_URL,
        host_network(settings.environment),
    )
