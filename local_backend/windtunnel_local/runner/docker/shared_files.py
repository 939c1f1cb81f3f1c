"""Check whether the engine sees this machine's files. One on another machine or in a container mounts its own."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from docker.errors import APIError
from docker.types import Mount

from windtunnel_local.runner.docker import endpoint
from windtunnel_local.runner.docker.client import Engine, engine_errors
from windtunnel_local.service.ground.errors import RunnerError

_MISSING = ("bind source path does not exist", "no such file or directory", "permission denied")
"""How Docker, Podman and another user's rootless engine say that a mount's source is missing."""
_NONE = "windtunnel-none"
"""A name that no image and no runtime has."""


def check_shared(engine: Engine, folder: Path) -> None:
    """Ask for a container that mounts a new folder in ``folder``, and that no engine can make. Blocks for one call.

    Docker checks mounts first, then refuses the runtime. Podman refuses the missing image first, so this tells
    nothing of Podman; nor of any engine if ``folder`` is not writable. The job's own container tells then.

    Raises:
        RunnerError: the engine does not see it.
    """
    api = engine.client().api
    with suppress(OSError), TemporaryDirectory(prefix=".windtunnel-", dir=folder) as probe:
        mounts = [Mount("/probe", probe, type="bind", read_only=True)]
        with engine_errors("look at this machine's files"):
            try:
                api.create_container(_NONE, host_config=api.create_host_config(mounts=mounts, runtime=_NONE))
            except APIError as error:
                if is_missing(error):
                    raise not_shared(str(folder)) from error


def is_missing(error: APIError) -> bool:
    """Whether the engine misses a file or folder that a container is to mount."""
    return any(words in str(error.explanation) for words in _MISSING)


def not_shared(path: str) -> RunnerError:
    """The engine does not see this path, which is here."""
    return RunnerError(
        f"The Docker engine at {endpoint.address()} does not see {path} of this machine, and cannot run its jobs: run"
        " Windtunnel where the engine is, name an engine of this machine in DOCKER_HOST, or share the folder, under"
        " the same path, with the virtual machine or container that the engine is in."
    )
