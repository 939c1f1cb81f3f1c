"""Files on their way into a job: flat memory, stoppable, never through a link into somebody's bytes."""

from __future__ import annotations

import errno
import os
import tracemalloc
from pathlib import Path

import pytest

from windtunnel_local.service.data import copying
from windtunnel_local.service.data.copying import copy_file, link_file
from windtunnel_local.service.ground.errors import InputError


def large(folder: Path, size: int) -> Path:
    """A file with a hole in it."""
    path = folder / "large"
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(size - 3)
        file.write(b"end")
    return path


def no_copy_in_the_kernel(*_: object) -> int:
    raise OSError(errno.EXDEV, "Invalid cross-device link")


def no_link(*_: object) -> None:
    raise OSError(errno.EXDEV, "Invalid cross-device link")


@pytest.mark.parametrize("kernel", ["copies", "refuses", "has no such call"])
def test_a_large_file_passes_in_flat_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str
) -> None:
    """Whether the kernel copies or we do; macOS has no call for it."""
    if kernel == "refuses":
        monkeypatch.setattr(os, "copy_file_range", no_copy_in_the_kernel)
    elif kernel == "has no such call":
        monkeypatch.delattr(os, "copy_file_range")
    size = 20 << 20
    original = large(tmp_path, size)
    tracemalloc.start()
    try:
        copy_file(original, tmp_path / "deep" / "copy", "s3://b/large")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20
    copy = tmp_path / "deep" / "copy"
    assert copy.stat().st_size == size
    with copy.open("rb") as file:
        file.seek(size - 5)
        assert file.read() == b"\0\0end"


def test_a_stop_reaches_a_long_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its end."""
    size = 4 << 20
    monkeypatch.setattr(copying, "_PART_BYTES", size // 2)

    class Stopped(Exception):
        pass

    def check() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        copy_file(large(tmp_path, size), tmp_path / "copy", "s3://b/large", check)
    assert (tmp_path / "copy").stat().st_size < size


def test_what_cannot_be_linked_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On another file system; the copy is a file of its own."""
    original = tmp_path / "original"
    original.write_text("bytes")
    monkeypatch.setattr(os, "link", no_link)
    link_file(original, tmp_path / "view" / "a", "s3://b/a")
    (tmp_path / "view" / "a").write_text("changed")
    assert original.read_text() == "bytes"


@pytest.mark.parametrize("linkable", [True, False])
def test_what_is_there_is_never_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linkable: bool
) -> None:
    """A name that exists may be another name of an object's bytes."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("first")
    second.write_text("second")
    link_file(first, tmp_path / "view", "s3://b/a")
    if not linkable:
        monkeypatch.setattr(os, "link", no_link)
    with pytest.raises(InputError, match="s3://b/b could not be written"):
        link_file(second, tmp_path / "view", "s3://b/b")
    assert first.read_text() == "first"


def test_originals_that_are_gone_or_closed(tmp_path: Path) -> None:
    """The one may be looked for again, the other is the user's to open."""
    with pytest.raises(FileNotFoundError):
        copy_file(tmp_path / "gone", tmp_path / "copy", "s3://b/a")
    with pytest.raises(FileNotFoundError):
        link_file(tmp_path / "gone", tmp_path / "copy", "s3://b/a")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="s3://b/a cannot be read"):
        copy_file(tmp_path / "folder", tmp_path / "copy", "s3://b/a")
