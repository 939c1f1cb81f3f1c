"""Removing what a script left."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windtunnel_local.service.data.trees import remove_tree

NOBODY = 65534


@contextmanager
def unprivileged_folder() -> Iterator[Path]:
    """A directory of a user for whom permissions count."""
    folder = Path(tempfile.mkdtemp())
    try:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        yield folder
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
        shutil.rmtree(folder)


def test_read_only_directories_are_removed() -> None:
    """What is behind a link stays as it is."""
    with unprivileged_folder() as folder:
        kept = folder / "kept"
        kept.mkdir()
        (kept / "file").touch()
        kept.chmod(0o500)
        tree = folder / "tree"
        (tree / "a" / "b").mkdir(parents=True)
        (tree / "a" / "b" / "file").touch()
        (tree / "link").symlink_to(kept)
        for closed, mode in ((tree / "a" / "b", 0o500), (tree / "a", 0), (tree, 0o500)):
            closed.chmod(mode)
        remove_tree(tree)
        assert not tree.exists()
        assert kept.stat().st_mode & 0o777 == 0o500
        kept.chmod(0o700)
    remove_tree(tree)
