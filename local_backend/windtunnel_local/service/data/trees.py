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
    _open_up(path)
    # From above to below, or what is in a closed directory would not be seen.
    for folder, names, _ in os.walk(path):
        for name in names:
            _open_up(Path(folder, name))
    _remove(path)


def _remove(path: Path) -> None:
    try:
        shutil.rmtree(path, ignore_errors=True)
    except RecursionError:  # deeper than Python's calls; `rm` has no such limit
        subprocess.run(["rm", "-rf", "--", str(path)], check=False, stderr=subprocess.DEVNULL)


def _open_up(folder: Path) -> None:
    with suppress(OSError):
        if stat.S_ISDIR(folder.lstat().st_mode):  # never what a link leads to
            folder.chmod(stat.S_IRWXU)
