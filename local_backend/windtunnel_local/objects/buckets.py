"""Buckets as directories: create, find and remove them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from windtunnel_local.objects import keys
from windtunnel_local.objects.errors import BucketNotEmpty, InvalidBucketName
from windtunnel_local.objects.records import sync_folder, write_durably

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_IP_ADDRESS = re.compile(r"\d+(\.\d+){3}")
_GRAVE = ".deleted-"
_CREATED = "created"
"""A file in the bucket's directory: it holds the bucket's place, and its mtime is the creation time."""


@dataclass(frozen=True)
class Bucket:
    """A bucket, when it was created, and the place (region) that was asked for then; empty: none."""

    name: str
    created: datetime
    place: str


def exists(root: Path, bucket: str) -> bool:
    """Whether a bucket of that name exists."""
    return is_name(bucket) and (root / bucket / "keys").is_dir()


def is_name(bucket: str) -> bool:
    """Whether S3 allows the name for a bucket."""
    return bool(_NAME.fullmatch(bucket)) and ".." not in bucket and not _IP_ADDRESS.fullmatch(bucket)


def found(root: Path) -> Sequence[Bucket]:
    """All buckets, sorted by name."""
    paths = sorted(path for path in root.iterdir() if exists(root, path.name))
    return [Bucket(path.name, _time(path / _CREATED), place(path)) for path in paths]


def place(folder: Path) -> str:
    """The place (region) that was asked for when this bucket was created; empty: none."""
    try:
        return (folder / _CREATED).read_text()
    except FileNotFoundError:  # deleted meanwhile
        return ""


def create(root: Path, bucket: str, place: str = "") -> None:
    """Create the bucket; an existing one keeps its place. Idempotent. Raises ``InvalidBucketName``."""
    if not is_name(bucket):
        raise InvalidBucketName(
            f"Bucket name {bucket!r} is not valid: 3 to 63 lower-case letters, digits, hyphens and dots, "
            "starting and ending with a letter or a digit, and no IP address."
        )
    folder = root / bucket
    for part in ("blobs", "tmp", "uploads"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    if not exists(root, bucket):
        write_durably(folder / _CREATED, place.encode())
    (folder / "keys").mkdir(exist_ok=True)  # last, as `exists` looks for it
    sync_folder(folder)
    sync_folder(root)


def bury(folder: Path, name: str) -> Path:
    """Delete an empty bucket, durably and in one step: rename its directory. Returns the new path, for `remove`.

    No object may be written to the bucket meanwhile. Raises ``BucketNotEmpty``.
    """
    if next(keys.walk(folder / "keys", b"", b""), None) is not None:
        raise BucketNotEmpty("The bucket you tried to delete is not empty: delete its objects first.")
    grave = folder.parent / f"{_GRAVE}{name}"
    folder.rename(grave)
    sync_folder(folder.parent)
    return grave


def remove(grave: Path) -> None:
    """Remove the files of a bucket that `bury` has renamed."""
    shutil.rmtree(grave, ignore_errors=True)


def remove_deleted(root: Path) -> int:
    """Remove the files of buckets whose removal a crash interrupted; returns how many buckets."""
    graves = list(root.glob(f"{_GRAVE}*"))
    for grave in graves:
        remove(grave)
    return len(graves)


def _time(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
