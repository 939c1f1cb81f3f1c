"""The processes that a test has started: whether they run, and whose they are."""

from __future__ import annotations

from pathlib import Path


def runs(pid: int) -> bool:
    """Whether a process runs; one that has ended, and that nobody has asked how, does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # gone, if only between opening and reading
        return False


def parent(pid: int) -> int:
    """The process that started it, or that has it now."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children(pid: int) -> list[int]:
    """Those that its main thread has started and that have not been asked how they ended."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
