"""This machine's memory, and how much of it a container may take.

A machine without free memory does not fail, it crawls: the kernel reads programs from disk again and again, and even
`docker kill` does not come through. So no container may take what others use already.
"""

from __future__ import annotations

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_MOST = 0.9
_LEAST = 0.25
_LEFT = 0.05


def total_bytes() -> int:
    """All of this machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def spare_bytes() -> int:
    """The most that containers may have: 90 % of the memory. A job that takes more fails, and the machine goes on."""
    return int(_MOST * total_bytes())


def limit_bytes(wanted: int | None) -> int | None:
    """The memory limit, now, of a container that may have ``wanted``; None: no limit."""
    room = room_bytes()
    return wanted if wanted is None or room is None else min(wanted, room)


def room_bytes(meminfo: Path = _MEMINFO) -> int | None:
    """The most that a container may have which starts now: what is free, less 5 % of the memory.

    A quarter of the memory at least, since what fills it now may soon end. None: this system does not say.
    """
    try:
        values = dict(line.split()[:2] for line in meminfo.read_text().splitlines())
        total, available = (1024 * int(values[name]) for name in ("MemTotal:", "MemAvailable:"))
    except (OSError, KeyError, ValueError):
        return None
    return int(max(available - _LEFT * total, _LEAST * total))
