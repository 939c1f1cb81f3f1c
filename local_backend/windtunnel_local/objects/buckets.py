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
from windtunnel_local.objects.records import sync_folder

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_IP_ADDRESS = re.compile(r"\d+(\.\d+){3}")
_GRAVE = ".deleted-"


@dataclass(frozen=True)
class Bucket:
    """A bucket and when it was made."""

    name: str
    created: datetime


def exists(root: Path, bucket: str) -> bool:
    """Whether there is a bucket of that name."""
    return is_name(bucket) and (root / bucket / "keys").is_dir()


def is_name(bucket: str) -> bool:
    """Whether S3 would take the name."""
    return bool(_NAME.fullmatch(bucket)) and ".." not in bucket and not _IP_ADDRESS.fullmatch(bucket)


def found(root: Path) -> Sequence[Bucket]:
    """All buckets, by name."""
    paths = sorted(path for path in root.iterdir() if exists(root, path.name))
    return [Bucket(path.name, _time(path / "created")) for path in paths]


def create(root: Path, bucket: str) -> None:
    """Create it if it is not there. Idempotent. Raises ``InvalidBucketName``."""
    if not is_name(bucket):
        raise InvalidBucketName(
            f"Bucket name {bucket!r} is not valid: 3 to 63 lower-case letters, digits, hyphens and dots, "
            "starting and ending with a letter or a digit, and no IP address."
        )
    folder = root / bucket
    for part in ("blobs", "tmp", "uploads"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    created = folder / "created"
    if not created.exists():
        created.touch()
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
