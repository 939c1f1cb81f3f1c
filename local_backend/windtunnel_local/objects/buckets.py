"""Buckets as directories: made, found, and removed as a whole."""

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
"""A file that has the bucket's place, and its age."""


@dataclass(frozen=True)
class Bucket:
    """A bucket, when it was made, and the place that was asked for then; empty: none."""

    name: str
    created: datetime
    place: str


def exists(root: Path, bucket: str) -> bool:
    """Whether there is a bucket of that name."""
    return is_name(bucket) and (root / bucket / "keys").is_dir()


def is_name(bucket: str) -> bool:
    """Whether S3 would take the name."""
    return bool(_NAME.fullmatch(bucket)) and ".." not in bucket and not _IP_ADDRESS.fullmatch(bucket)


def found(root: Path) -> Sequence[Bucket]:
    """All buckets, by name."""
    paths = sorted(path for path in root.iterdir() if exists(root, path.name))
    return [Bucket(path.name, _time(path / _CREATED), place(path)) for path in paths]


def place(folder: Path) -> str:
    """Which place was asked for when the bucket of a folder was made; empty: none."""
    try:
        return (folder / _CREATED).read_text()
    except FileNotFoundError:  # deleted meanwhile
        return ""


def create(root: Path, bucket: str, place: str = "") -> None:
    """Create it if it is not there; one that is keeps its place. Idempotent. Raises ``InvalidBucketName``."""
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
    (folder / "keys").mkdir(exist_ok=True)  # last: it is what makes the bucket exist
    sync_folder(folder)
    sync_folder(root)


def bury(folder: Path, name: str) -> Path:
    """Take an empty bucket away, durably, in one step; returns where its files wait for `remove`.

    Nothing may be published in it meanwhile. Raises ``BucketNotEmpty``.
    """
    if next(keys.walk(folder / "keys", b"", b""), None) is not None:
        raise BucketNotEmpty("The bucket you tried to delete is not empty: delete its objects first.")
    grave = folder.parent / f"{_GRAVE}{name}"
    folder.rename(grave)
    sync_folder(folder.parent)
    return grave


def remove(grave: Path) -> None:
    """Remove what `bury` took away."""
    shutil.rmtree(grave, ignore_errors=True)


def remove_deleted(root: Path) -> int:
    """Remove the buckets whose removal a crash cut short; returns how many."""
    graves = list(root.glob(f"{_GRAVE}*"))
    for grave in graves:
        remove(grave)
    return len(graves)


def _time(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
