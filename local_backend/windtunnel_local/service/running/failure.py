"""Why a job failed, as FailureReason says it."""

from __future__ import annotations

import errno
from pathlib import Path

from windtunnel_local.service.data.paths import JobPaths
from windtunnel_local.service.ports import ContainerState
from windtunnel_local.service.request.instances import GIB

MAX_FAILURE_CHARACTERS = 1024
SIGKILL_EXIT = 137


def failure_reason(host: str, state: ContainerState, folders: JobPaths, memory_limit_bytes: int) -> str:
    """The reason of a host that ended with an error.

    ``AlgorithmError:`` and the first 1,024 characters that the script (or AWS's toolkit)
    wrote to /opt/ml/output/failure, or the exit code. A kill for memory adds the limit.
    """
    if state.status == "absent":
        return (
            f"InternalServerError: the container of host {host} disappeared while the job ran; it was removed"
            " by something else than this backend. Start the job again."
        )
    text = _first_characters(folders, folders.failure(host)) or f"Exit Code: {state.exit_code}"
    reason = f"AlgorithmError: {text}"
    if state.oom_killed:
        return f"{reason}\nOutOfMemory: {_memory(host, memory_limit_bytes)}"
    if state.exit_code == SIGKILL_EXIT:
        return f"{reason}\nKilled by SIGKILL, in most cases for memory. {_memory(host, memory_limit_bytes)}"
    return reason


def internal_reason(error: Exception) -> str:
    """The reason of a job that failed for what the backend did not expect."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"ClientError: No space is left on the disk of WINDTUNNEL_HOME ({error.filename}). Free some, or"
            " set WINDTUNNEL_HOME to a directory on another disk."
        )
    return (
        f"InternalServerError: {type(error).__name__}: {error}. This is a fault of Windtunnel, not of the"
        " script; backend.log in WINDTUNNEL_HOME has the traceback."
    )


def _memory(host: str, limit_bytes: int) -> str:
    return (
        f"The memory limit of host {host} is {limit_bytes / GIB:g} GiB. Use a smaller batch, fewer"
        " data-loader workers or fewer cores (WINDTUNNEL_LOCAL_CORES), a larger instance type, or raise"
        " WINDTUNNEL_MEMORY_GIB if this machine has more (and restart the backend: `windtunnel down`)."
    )


def _first_characters(folders: JobPaths, path: Path) -> str:
    try:
        if not folders.holds(path):
            return ""
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MAX_FAILURE_CHARACTERS).strip()
    except OSError:
        return ""
