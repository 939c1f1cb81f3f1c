"""Whether processes of a test still run."""

from __future__ import annotations

from pathlib import Path


def runs(pid: int) -> bool:
    """Whether a process runs; one that has ended, and that nobody has asked how, does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # gone, if only between opening and reading
        return False
