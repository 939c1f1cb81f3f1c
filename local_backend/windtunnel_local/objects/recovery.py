"""What a crash leaves in a bucket, told from what is in use. Safe while the store serves."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from windtunnel_local.objects import keys
from windtunnel_local.objects.parts import PARTS_FILE, UPLOAD_FILE, loaded
from windtunnel_local.objects.records import Record


def remove_remains(bucket: Path, own: str, drop_folder: Callable[[Path], None]) -> int:
    """Remove what no key refers to and no upload needs; returns how many files and folders.

    ``own``: what names of the running process start with; those are left alone.
    ``drop_folder`` removes a folder of parts. An upload that can go on is no remains.
    """
    # First what might go, then what is in use: whatever becomes used meanwhile carries an own name,
    # or is an upload that was still one when the first list was made.
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
            # Completed, but killed before the upload and the parts that were not named had gone.
            removed += _tidy(folder)
        elif folder.name in ended:
            drop_folder(folder)
            removed += 1
    return removed


def _tidy(folder: Path) -> int:
    """Remove what is in an object's folder besides its parts."""
    try:
        kept = {part.name for part in loaded(folder)} | {PARTS_FILE}
    except FileNotFoundError:  # replaced meanwhile
        return 0
    return sum(_remove(path) for path in list(folder.iterdir()) if path.name not in kept)


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
