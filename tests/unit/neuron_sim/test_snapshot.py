"""What a job adds to a container's files is found, and what it has changed or removed is told."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from neuron_sim.warm import leftovers
from neuron_sim.warm.snapshot import Snapshot


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """An image's files."""
    for name in ("bin/tool", "lib/deep/module.py", "tmp/.keep"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("bin/tool")
    return tmp_path


def snapshot(top: Path) -> Snapshot:
    """Of the files as they are."""
    taken = Snapshot(str(top))
    taken.complete()
    return taken


def test_what_was_added_is_found_and_goes(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, folders with all in them, links, whatever their names; then nothing is left to say. Again, too."""
    # Shared memory is this machine's, and not a job's.
    monkeypatch.setattr(leftovers, "_MEMORY_FOLDERS", ())
    monkeypatch.setattr(leftovers, "_IPC", ())
    before = sorted(top.rglob("*"))
    taken = snapshot(top)
    for _ in range(2):
        (top / "tmp" / "new\nline").write_text("x")
        (top / "lib" / "deep" / "package").mkdir()
        (top / "lib" / "deep" / "package" / "module.py").write_text("x")
        (top / "tmp" / "to").symlink_to("/etc")
        expected = ["lib/deep/package", "tmp/new\nline", "tmp/to"]
        assert taken.added() == [str(top / name) for name in expected]
        assert leftovers.remove(taken.added()) == []
        assert taken.added() == []
        assert taken.damage() == []
        assert sorted(top.rglob("*")) == before


def _replace(path: Path) -> None:
    shutil.rmtree(path)
    path.symlink_to("/tmp")


@pytest.mark.parametrize(
    "harm",
    [
        lambda top: (top / "bin" / "tool").write_text("other"),
        lambda top: os.utime(top / "bin" / "tool", (0, 0)),
        lambda top: (top / "bin" / "tool").unlink(),
        lambda top: (top / "bin" / "tool").rename(top / "bin" / "renamed"),
        lambda top: (top / "lib").rename(top / "library"),
        lambda top: _replace(top / "lib"),
    ],
)
def test_what_cannot_be_undone_is_told(top: Path, harm: Callable[[Path], object]) -> None:
    """A container whose image was changed is not given to another job."""
    taken = snapshot(top)
    harm(top)
    for path in taken.added():
        shutil.rmtree(path, ignore_errors=True)
        Path(path).unlink(missing_ok=True)
    assert taken.damage() != []
