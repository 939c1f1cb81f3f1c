"""Finding and removing what a crash has left in a bucket. Safe while requests are served."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from windtunnel_local.objects import keys
from windtunnel_local.objects.parts import UPLOAD_FILE, tidy
from windtunnel_local.objects.records import Record


def remove_remains(bucket: Path, own: str, drop_folder: Callable[[Path], None]) -> int:
    """Remove files that no key refers to and no unfinished upload needs; returns how many files and folders.

    ``own``: the prefix of names that this process makes; these files are kept.
    ``drop_folder`` removes a folder of parts.
    """
    # First list what may be unused, then read what is in use: a file that comes into use in between has a
    # name with this process's prefix, or belongs to an upload that was unfinished in the first list.
    blobs = list(_of_others(bucket / "blobs", own))
    staged = list(_of_others(bucket / "tmp", own))
    folders = list(_of_others(bucket / "uploads", own))
    ended = {folder.name for folder in folders if not (folder / UPLOAD_FILE).exists()}
    used: set[str | None] = set()
    for record in _records(bucket):
        used.update(record.place)
    removed = 0
    for path in staged:
        removed += _remove(path)
    for path in blobs:
        if path.name not in used:
            removed += _remove(path)
    for folder in folders:
        if folder.name in used:
            # The upload was completed, but a crash came before its file and unused parts were removed.
            removed += tidy(folder)
        elif folder.name in ended:
            drop_folder(folder)
            removed += 1
    return removed


def _of_others(folder: Path, own: str) -> Iterator[Path]:
    return (path for path in folder.iterdir() if not path.name.startswith(own))


def _remove(path: Path) -> int:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    return 1


def _records(bucket: Path) -> Iterator[Record]:
    for _, path in keys.walk(bucket / "keys", b"", b""):
        if record := Record.load(path):
            yield record
