"""Removes what a job leaves in its container: processes, files, shared memory. Mounted files are the backend's."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import time
from collections.abc import Collection, Iterable
from pathlib import Path

from neuron_sim import processes

_INIT = 1
_PR_SET_DUMPABLE = 4
_ROUNDS = 200
_ROUND_S = 0.01
_IPC = ("shm", "sem", "msg")
_MEMORY_FOLDERS = ("/dev/shm", "/dev/mqueue")
"""Mounts in memory, which no backend empties."""


def end_processes(spared: Collection[int]) -> bool:
    """SIGKILL all processes of this container except the first, this one and ``spared``. Returns whether they are gone.

    Blocks for two seconds at most.
    """
    kept = {_INIT, os.getpid(), *spared}
    for _ in range(_ROUNDS):
        others = processes.running() - kept
        if not others:
            return True
        for pid in others:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_ROUND_S)
    return False


def started(pid: int) -> int:
    """When a process was started, in the kernel's ticks, which tells it from a later one with its id. 0: gone."""
    try:
        return int(processes.stat(pid)[19])
    except (OSError, IndexError):
        return 0


def remove(paths: Iterable[str]) -> list[str]:
    """Remove files and folders, and all in shared memory. Returns a text for each that could not be removed."""
    problems = []
    for text in [*paths, *_in_memory()]:
        path = Path(text)
        with contextlib.suppress(FileNotFoundError):
            try:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink()
            except FileNotFoundError:
                raise
            except OSError as error:
                problems.append(f"{text}: {error.strerror}")
    return [*problems, *_shared_objects()]


def prefer_for_oom(pid: int | str) -> None:
    """Let the kernel, when memory runs out, end this process and its children before the keeper."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("300")


def close_to_debuggers(closed: bool) -> None:
    """Forbid, or allow again, that other processes of this user read and change this one's memory.

    Processes that outlive a job are closed to it; a job's own processes are as usual.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0 if closed else 1, 0, 0, 0)


def _in_memory() -> list[str]:
    found = []
    for folder in _MEMORY_FOLDERS:
        with contextlib.suppress(OSError):
            found += [str(path) for path in Path(folder).iterdir()]
    return found


def _shared_objects() -> list[str]:
    """A text for each kind of System V objects that is left: they outlive processes, and have no path to remove."""
    problems = []
    for kind in _IPC:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/sysvipc/{kind}").read_text().splitlines()
            if len(lines) > 1:
                problems.append(f"{len(lines) - 1} System V {kind} objects")
    return problems
