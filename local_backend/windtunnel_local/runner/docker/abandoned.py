"""Running containers of homes that are gone: an endpoint's, or a job's that heeds no limit. Nobody would end them."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from docker.errors import APIError

from windtunnel_local.runner.docker import create_arguments

if TYPE_CHECKING:
    from docker import APIClient

_DELETED = "//deleted"
"""How the kernel marks a mount whose file or folder was deleted. One on a disk that was unmounted has no mark."""


def is_gone(folder: str) -> bool:
    """Whether a folder certainly does not exist. One of another user, at which this one may not look, might."""
    try:
        Path(folder).stat()
    except OSError as error:
        return isinstance(error, (FileNotFoundError, NotADirectoryError))
    return False


def remove_running(api: APIClient, proc: Path = Path("/proc")) -> None:
    """Remove running containers whose home was deleted. Idempotent. Docker's errors are the caller's.

    That this machine has no such folder is not enough: the disk may come back, or the engine's clients may see
    different files. So the container's own mounts must be deleted too. One that has ended has none to look at, and
    stays: its log and exit code may still be wanted.
    """
    for container in api.containers(filters={"label": [create_arguments.HOME_LABEL]}):
        home = container["Labels"][create_arguments.HOME_LABEL]
        if not is_gone(home):
            continue
        with suppress(APIError):  # gone meanwhile, or the engine cannot: no matter of the job that comes
            found = api.inspect_container(container["Id"])
            own = {m["Destination"] for m in found["Mounts"] if Path(m["Source"]).is_relative_to(home)}
            if _are_deleted(own, proc / str(found["State"]["Pid"]) / "mountinfo"):
                api.remove_container(container["Id"], force=True, v=True)


def _are_deleted(targets: Collection[str], mountinfo: Path) -> bool:
    """Whether all mounts at ``targets`` are of what was deleted; False: also where the process cannot be seen."""
    try:
        lines = [line.split() for line in mountinfo.read_text().splitlines()]
    except OSError:
        return False
    roots = [root for _, _, _, root, target, *_ in lines if target in targets]
    return bool(roots) and all(root.endswith(_DELETED) for root in roots)
