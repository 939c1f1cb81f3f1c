"""Directories that a script may have written to: nothing about them can be relied on."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from contextlib import suppress
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Remove a directory and all below it, also what a script has made read-only.

    Idempotent. What cannot be removed even so, or belongs to another user, stays.
    """
    _remove(path)
    if not os.path.lexists(path):
        return
    open_tree(path)
    _remove(path)


def open_tree(path: Path) -> None:
    """Let the owner read a directory and all below it, also what a script has closed. Follows no link. Idempotent."""
    open_up(path)
    # From above to below, or what is in a closed directory would not be seen.
    for folder, names, files in os.walk(path):
        for name in (*names, *files):
            open_up(Path(folder, name))


def open_up(path: Path) -> None:
    """`open_tree` of one file or directory, without what is below it."""
    with suppress(OSError):
        mode = path.lstat().st_mode
        needed = {stat.S_IFDIR: stat.S_IRWXU, stat.S_IFREG: stat.S_IRUSR}.get(stat.S_IFMT(mode), 0)
        if mode & needed != needed:
            path.chmod(stat.S_IMODE(mode) | needed)


def _remove(path: Path) -> None:
    try:
        shutil.rmtree(path, ignore_errors=True)
    except RecursionError:  # deeper than Python's calls; `rm` has no such limit
        subprocess.run(["rm", "-rf", "--", str(path)], check=False, stderr=subprocess.DEVNULL)
