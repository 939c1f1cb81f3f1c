"""The texts of FailureReason: why a job failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from windtunnel.priceperf.instances import GIB
from windtunnel_local.service.data.untrusted_files import open_regular
from windtunnel_local.service.ground.containers import ContainerState
from windtunnel_local.service.ground.errors import OutOfThreads, is_full_disk, is_out_of_threads
from windtunnel_local.service.ground.job_paths import JobPaths
from windtunnel_local.service.ground.lifecycle import MAX_REASON_CHARACTERS
from windtunnel_local.service.ground.printable import printable

SIGKILL_EXIT = 137
_MADE_UP_EXIT = 255
"""The exit code that an engine reports if it does not know how a container ended."""
_BLAMED = "AlgorithmError: "
_KILLED = (
    "Killed by SIGKILL, though not for its memory limit: by a command such as `docker kill`, by the script itself, or"
    " by the kernel because the machine had no memory left (dmesg says so)."
)
_OTHERS = "because this machine's memory was full"
"""The simulator's launcher says this if a process was killed for memory far below its container's limit."""


def failure_reason(
    host: str, state: ContainerState, folders: JobPaths, memory_limit_bytes: int, start: str | None = None
) -> str:
    """The FailureReason of a job, from the host that failed first.

    ``AlgorithmError:``, what the script (or AWS's toolkit) wrote to /opt/ml/output/failure, and the exit code behind it
    as on AWS; without that file ``start`` (why the program did not start), or else the exit code. What was written is
    cut, so that there is room for all else. If the container was killed for reaching its memory limit, the limit is
    added: the container's own, or else ``memory_limit_bytes``, which a job gets on a machine with as much free memory.
    """
    if state.status == "absent":
        return (
            f"InternalServerError: the container of host {host} disappeared while the job ran; it was removed"
            " by something else than this backend. Start the job again."
        )
    if state.lost and state.why:
        return f"InternalServerError: {state.why}"
    if state.lost:
        return (
            "InternalServerError: the container engine, or this machine, went down and took the container of host"
            f" {host} along (exit code {state.exit_code}). Start the job again; with dockerd's --live-restore"
            " containers outlive their engine."
        )
    written = _first_characters(folders, folders.failure(host))
    end = f", exit code: {state.exit_code}" if written and state.exit_code != _MADE_UP_EXIT else ""
    text = written or start or f"Exit Code: {state.exit_code}"
    if state.why:
        end += f"\n{state.why}"
    elif _OTHERS in text:
        pass
    elif state.oom_killed:
        end += f"\nOutOfMemory: {_memory(host, state.memory_bytes or memory_limit_bytes, memory_limit_bytes)}"
    elif state.exit_code == SIGKILL_EXIT:
        end += f"\n{_KILLED}"
    return f"{_BLAMED}{text[: MAX_REASON_CHARACTERS - len(_BLAMED) - len(end)]}{end}"


def settled(host: str, state: ContainerState, folders: JobPaths) -> ContainerState:
    """The state of a container that has ended. If it is lost, the files in its /opt/ml/output may tell how it ended.

    An engine that is killed while a container ends forgets the exit code. But AWS's toolkit writes
    /opt/ml/output/success or failure as its last action.
    """
    if not state.lost:
        return state
    success = folders.success(host)
    if folders.holds(success) and success.is_file():
        return replace(state, lost=False, exit_code=0)
    if state.exit_code == _MADE_UP_EXIT and _first_characters(folders, folders.failure(host)):
        return replace(state, lost=False)
    return state


def internal_reason(error: Exception) -> str:
    """The FailureReason of a job that failed with an exception which the backend did not expect."""
    if is_full_disk(error):
        return (
            f"ClientError: No space is left on the disk of WINDTUNNEL_HOME ({error.filename}). Free some, or"
            " set WINDTUNNEL_HOME to a directory on another disk."
        )
    if is_out_of_threads(error):
        return f"InternalServerError: {OutOfThreads()}"
    return (
        f"InternalServerError: {type(error).__name__}: {error}. This is a fault of Windtunnel, not of the"
        " script; backend.log in WINDTUNNEL_HOME has the traceback."
    )


def _memory(host: str, limit_bytes: int, usual_bytes: int) -> str:
    more = (
        "raise WINDTUNNEL_MEMORY_GIB if this machine has more (and restart the backend: `windtunnel down`)"
        if limit_bytes >= usual_bytes
        else "end what else needs memory: this machine had no more free when the container began"
    )
    return (
        f"The memory limit of host {host} is {limit_bytes / GIB:.4g} GiB, for all of its processes. Rehearse fewer"
        " cores (local_cores=1, WINDTUNNEL_LOCAL_CORES): each is a process that loads the model and starts data-loader"
        f" workers of its own. Or {more}."
    )


def _first_characters(folders: JobPaths, path: Path) -> str:
    try:
        with open_regular(path, folders) as file:
            data = file.read(4 * MAX_REASON_CHARACTERS)  # UTF-8 has at most 4 bytes a character
            text = data.decode("utf-8", "replace").replace("\0", "")
            return printable(text, "\n\t")[:MAX_REASON_CHARACTERS].strip()
    except OSError:
        return ""
