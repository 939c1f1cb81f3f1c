"""A core belongs to one process at a time, until that process ends.

There is one file per core, with a POSIX record lock: the kernel frees the lock however a
process dies, tells which process holds it, and does not pass it on to forked children, so
a DataLoader worker that outlives its script holds nothing.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuron_sim.errors import CoreBusyError
from neuron_sim.runtime.cores import CoreRequest

_FLOCK = struct.Struct("hhqqi4x")
"""struct flock of 64-bit Linux: type, whence, start, length, process."""

_held: dict[int, int] = {}
"""Descriptors by core. Closing any descriptor of a locked file would free the lock, so they stay open."""
_holder = 0
"""The process that holds these locks: a forked child inherits the descriptors, but holds nothing."""


def claim(folder: Path, request: CoreRequest, available: int) -> tuple[int, ...]:
    """Take the cores for this process; returns them. Does not wait.

    Raises:
        CoreBusyError: not all of them are free; none is taken then. The text is the Neuron runtime's.
    """
    folder.mkdir(parents=True, exist_ok=True)
    candidates = request.cores if request.cores is not None else tuple(range(available))
    taken: list[int] = []
    for core in candidates:
        if len(taken) < request.count and _take(folder, core):
            taken.append(core)
    if len(taken) == request.count:
        return tuple(taken)
    _release(taken)
    raise CoreBusyError(
        f"Logical Neuron Core(s) not available - Requested:{request.text} Available:{len(taken)} Logical Core size:1"
    )


def release() -> None:
    """Give all cores of this process back before it ends. Idempotent; does nothing in a forked child."""
    if _holder == os.getpid():
        _release(list(_held))


def holders(folder: Path) -> dict[int, int]:
    """Process ids by core, of the cores that are held. Reads locks, not records: never stale."""
    found = {}
    for path in sorted(folder.glob("core-*.lock")):
        name = path.stem.removeprefix("core-")
        if not name.isdigit():
            continue
        mine = int(name) in _held and _holder == os.getpid()
        if pid := _holder if mine else _locked_by(path):
            found[int(name)] = pid
    return found


@contextmanager
def observing(folder: Path, name: str) -> Iterator[None]:
    """Be listed among those who look at the devices without using a core (`neuron-ls --show-all-procs`)."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"observer-{os.getpid()}-{name}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def observers(folder: Path) -> list[int]:
    """Process ids of those who are `observing`; removes what a killed one has left."""
    found = []
    for path in sorted(folder.glob("observer-*.lock")):
        if pid := _locked_by(path):
            found.append(pid)
        else:
            path.unlink(missing_ok=True)
    return found


def lock_path(folder: Path, core: int) -> Path:
    """The file whose lock stands for the core."""
    return folder / f"core-{core}.lock"


def _take(folder: Path, core: int) -> bool:
    global _holder
    descriptor = os.open(lock_path(folder, core), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return False
    if _holder != os.getpid():
        _held.clear()
        _holder = os.getpid()
    _held[core] = descriptor
    return True


def _release(cores: list[int]) -> None:
    for core in cores:
        os.close(_held.pop(core))


def _locked_by(path: Path) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, question))
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else pid
