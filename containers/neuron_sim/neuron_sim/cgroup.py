"""The container's memory limit, its use and its out-of-memory kills, read from its cgroup (version 2, or 1)."""

from __future__ import annotations

import os
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


def memory_limit() -> int:
    """Bytes that all processes here may have together: the container's limit, or the machine's memory if less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_numbers("memory.max", "memory.limit_in_bytes")])


def memory_charged() -> int | None:
    """Bytes that count against the container's limit now; None where the cgroup does not say."""
    return next(iter(_numbers("memory.current", "memory.usage_in_bytes")), None)


def memory_peak() -> int | None:
    """The most bytes that have counted against the container's limit; None where the cgroup does not say."""
    return next(iter(_numbers("memory.peak", "memory.max_usage_in_bytes")), None)


def oom_kills() -> int | None:
    """How often the kernel has killed a process of this container for memory; None where the cgroup does not say."""
    for line in _text("memory.events", "memory.oom_control").splitlines():
        name, _, count = line.partition(" ")
        if name == "oom_kill" and count.isdigit():
            return int(count)
    return None


def _numbers(name: str, old: str) -> list[int]:
    text = _text(name, old).strip()
    return [int(text)] if text.isdigit() else []


def _text(name: str, old: str) -> str:
    for path in (_ROOT / name, _ROOT / "memory" / old):
        try:
            return path.read_text()
        except OSError:
            continue
    return ""
