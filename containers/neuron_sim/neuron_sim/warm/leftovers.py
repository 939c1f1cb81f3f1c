"""What a job leaves behind in its container, apart from the files the backend replaces itself."""

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
"""In memory: mounts that no backend empties."""


def end_processes(spared: Collection[int]) -> bool:
    """SIGKILL every process of this container but the first, this one and ``spared``; whether they are gone.

    Blocks for two seconds at most.
    """
    kept = {_INIT, os.getpid(), *spared}
    for _ in range(_ROUNDS):
        others = [pid for pid in _processes() if pid not in kept]
        if not others:
            return True
        for pid in others:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_ROUND_S)
    return False


def started(pid: int) -> int:
    """When a process was started, in the kernel's ticks: what tells it from a later one of its number. 0: gone."""
    try:
        return int(processes.stat(pid)[19])
    except (OSError, IndexError):
        return 0


def remove(paths: Iterable[str]) -> list[str]:
    """Remove files and folders, and what is in shared memory; what could not be removed, in words."""
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
    """Whether other processes of this user may read and change this one's memory.

    What stays is closed to the jobs that come and go; a job's own processes are as ever.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0 if closed else 1, 0, 0, 0)


def _processes() -> list[int]:
    """All processes here, without those that have ended and wait for their parent."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state = processes.stat(int(entry.name))[0]
        except (OSError, IndexError):
            continue
        if state not in "ZX":
            found.append(int(entry.name))
    return found


def _in_memory() -> list[str]:
    found = []
    for folder in _MEMORY_FOLDERS:
        with contextlib.suppress(OSError):
            found += [str(path) for path in Path(folder).iterdir()]
    return found


def _shared_objects() -> list[str]:
    """System V objects outlive processes and have no path: a container that has some is not clean."""
    problems = []
    for kind in _IPC:
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/sysvipc/{kind}").read_text().splitlines()
            if len(lines) > 1:
                problems.append(f"{len(lines) - 1} System V {kind} objects")
    return problems
