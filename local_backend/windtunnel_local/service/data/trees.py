"""Removes directory trees that a script has written, or makes them readable, whatever their permissions and depth."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from contextlib import suppress
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Remove a directory and all below it, also files that a script has made read-only.

    Idempotent. Files that still cannot be removed, as those of another user, stay; no error is raised.
    """
    _remove(path)
    if not os.path.lexists(path):
        return
    make_tree_readable(path)
    _remove(path)


def make_tree_readable(path: Path) -> None:
    """Give the owner read permission on a directory and all below it. Does not follow links. Idempotent."""
    make_readable(path)
    # From the top down, because a directory can be listed only once it is readable.
    for folder, names, files in os.walk(path):
        for name in (*names, *files):
            make_readable(Path(folder, name))


def make_readable(path: Path) -> None:
    """Like `make_tree_readable`, but only for the file or directory itself."""
    with suppress(OSError):
        mode = path.lstat().st_mode
        needed = {stat.S_IFDIR: stat.S_IRWXU, stat.S_IFREG: stat.S_IRUSR}.get(stat.S_IFMT(mode), 0)
        if mode & needed != needed:
            path.chmod(stat.S_IMODE(mode) | needed)


def _remove(path: Path) -> None:
    try:
        shutil.rmtree(path, ignore_errors=True)
    except RecursionError:  # the tree is deeper than Python's recursion limit; `rm` has no such limit
        subprocess.run(["rm", "-rf", "--", str(path)], check=False, stderr=subprocess.DEVNULL)
