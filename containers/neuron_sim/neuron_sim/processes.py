"""Facts about processes from Linux's /proc. A process that has ended gives an empty answer, except from `stat`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Use:
    """What a process has used since its start. ``resident_bytes``: memory it has now."""

    user_seconds: float
    system_seconds: float
    resident_bytes: int


def command(pid: int) -> str:
    """The command line, its words joined by spaces; empty when there is no such process."""
    try:
        raw = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ""
    return raw.replace(b"\0", b" ").decode(errors="replace").strip()


def use(pid: int) -> Use | None:
    """Processor time and memory of a process with all its threads, without its children."""
    try:
        fields = stat(pid)
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return Use(int(fields[11]) / _TICKS, int(fields[12]) / _TICKS, pages * os.sysconf("SC_PAGE_SIZE"))


def ancestors(pid: int) -> Iterator[int]:
    """The ids of the parent, its parent, and so on."""
    while pid > 1:
        try:
            pid = int(stat(pid)[1])
        except (OSError, IndexError, ValueError):
            return
        yield pid


def children(pid: int) -> list[int]:
    """The ids of the child processes, also of those that have ended and wait for their parent."""
    return [child for child, (_, parent) in _states().items() if parent == pid]


def running() -> set[int]:
    """The ids of all processes here, without those that have ended and wait for their parent."""
    return {pid for pid, (state, _) in _states().items() if state not in "ZX"}


def _states() -> dict[int, tuple[str, int]]:
    """State and parent of each process that this one sees, by its id."""
    found = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                state, parent, *_ = stat(int(entry.name))
                found[int(entry.name)] = state, int(parent)
    return found


def stat(pid: int) -> list[str]:
    """The fields of /proc/…/stat from the state on: the name before them may hold spaces and parentheses.

    Raises ``OSError`` where there is no such process.
    """
    return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
