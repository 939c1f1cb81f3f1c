"""Removing what a script left."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.unit.service.samples import job
from windtunnel_local.service.data.outputs import make_outputs_readable
from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.ground.job_paths import JobPaths

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


def test_what_a_script_closed_is_read() -> None:
    """By the user that both are; links are left alone, and so are files that can be read."""
    with unprivileged_folder() as folder:
        folders = JobPaths(folder / "job")
        model, output = folders.model("algo-1"), folders.output_data("algo-1")
        kept = folder / "kept"
        for path in (model / "deep", output, kept):
            path.mkdir(parents=True)
        for path in (
            kept,
            model / "deep" / "weights",
            model / "read",
            output / "plot",
            folders.failure("algo-1"),
        ):
            if path != kept:
                path.write_text(path.name)
            path.chmod(0)
        (model / "read").chmod(0o440)
        (model / "link").symlink_to(kept)
        folders.checkpoints("algo-1").symlink_to(kept)
        for path in (model / "deep", model, output, output.parent, folders.ml("algo-1")):
            path.chmod(0)
        make_outputs_readable(job(folder), folders)
        texts = [model / "deep" / "weights", model / "read", output / "plot", folders.failure("algo-1")]
        assert [path.read_text() for path in texts] == ["weights", "read", "plot", "failure"]
        assert (model / "read").stat().st_mode & 0o777 == 0o440
        assert kept.stat().st_mode & 0o777 == 0
