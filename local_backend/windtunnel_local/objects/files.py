"""The object store on the file system.

    <root>/<bucket>/keys/...     one small record a key (`keys`, `records`); its rename is the commit
    <root>/<bucket>/blobs/<id>   the bytes; never changed once they are there
    <root>/<bucket>/tmp/         what is being written
    <root>/<bucket>/uploads/     multipart uploads (`uploads`)

A write goes to ``tmp``, is flushed to disk, renamed to ``blobs``, and becomes visible
when its record is renamed over the old one. So at any moment, also after a power cut,
a key has its old bytes or its new ones. What a crash leaves unreferenced is found by
`recover`. One process writes (the server's lock sees to it); its threads share this object.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import BinaryIO

from windtunnel_local.objects import keys
from windtunnel_local.objects.errors import InvalidBucketName, ObjectExists
from windtunnel_local.objects.records import Record, sync_folder, write_durably
from windtunnel_local.service.errors import NoSuchBucket, NoSuchKey
from windtunnel_local.service.ports import ObjectInfo

COPY_BYTES = 1 << 20
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_NO_METADATA: Mapping[str, str] = {}


@dataclass(frozen=True)
class Bucket:
    """A bucket and when it was made."""

    name: str
    created: datetime


@dataclass(frozen=True)
class Page:
    """A page of a listing. ``next``: pass it as ``after`` for the next page; None at the end."""

    objects: Sequence[ObjectInfo]
    prefixes: Sequence[str]
    next: str | None


class FileObjects:
    """Implements `ObjectStore` and what S3's API needs beyond it. All calls block; all are thread-safe.

    ``metadata`` of an object are the HTTP headers returned with it, by lower-case name.
    """

    def __init__(self, root: Path) -> None:
        """Open the store, making ``root`` if it is not there."""
        root.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._unclean = root / ".unclean"
        self._crashed = self._unclean.exists()
        self._unclean.touch()
        # Names of this process's blobs: `recover` leaves alone what carries them.
        self._token = uuid.uuid4().hex[:12]
        self._numbers = itertools.count()
        self._commit_lock = threading.Lock()

    def close(self) -> None:
        """Note a clean end, so that the next start need not look for remains. Call when nothing writes."""
        self._unclean.unlink(missing_ok=True)

    def recover(self) -> int:
        """After a crash, remove what no key refers to; returns how many files. Safe while serving."""
        if not self._crashed:
            return 0
        removed = 0
        for bucket in self.buckets():
            folder = self._root / bucket.name
            used = {record.blob for record in _records(folder)}
            remains = [*(folder / "blobs").iterdir(), *(folder / "tmp").iterdir()]
            for path in remains:
                if not path.name.startswith(self._token) and path.name not in used:
                    path.unlink(missing_ok=True)
                    removed += 1
        self._crashed = False
        return removed

    # --- buckets ---

    def buckets(self) -> Sequence[Bucket]:
        """All buckets, by name."""
        found = sorted(path for path in self._root.iterdir() if (path / "keys").is_dir())
        return [Bucket(path.name, _time(path / "created")) for path in found]

    def create_bucket(self, bucket: str) -> None:
        """Create it if it is not there. Idempotent. Raises ``InvalidBucketName``."""
        if not _BUCKET.fullmatch(bucket) or ".." in bucket:
            raise InvalidBucketName(
                f"Bucket name {bucket!r} is not valid: 3 to 63 lower-case letters, digits, hyphens and dots, "
                "starting and ending with a letter or a digit."
            )
        folder = self._root / bucket
        for part in ("blobs", "tmp", "uploads"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "created").touch()
        (folder / "keys").mkdir(exist_ok=True)  # last: it is what makes the bucket exist
        sync_folder(folder)
        sync_folder(self._root)

    def has_bucket(self, bucket: str) -> bool:
        """Whether it exists."""
        return bool(_BUCKET.fullmatch(bucket)) and (self._root / bucket / "keys").is_dir()

    # --- one object ---

    def put(
        self,
        bucket: str,
        key: str,
        data: BinaryIO,
        metadata: Mapping[str, str] | None = None,
        *,
        if_absent: bool = False,
    ) -> ObjectInfo:
        """Store the stream's rest. If reading raises, nothing is stored.

        Raises:
            NoSuchBucket, InvalidKey
            ObjectExists: ``if_absent`` and the key is taken.
        """
        keys.encoded(key)
        digest = hashlib.md5(usedforsecurity=False)
        with self.stage(bucket) as (path, file):
            size = 0
            while chunk := data.read(COPY_BYTES):
                file.write(chunk)
                digest.update(chunk)
                size += len(chunk)
            return self.commit(
                bucket, key, path, file, size, digest.hexdigest(), metadata, if_absent=if_absent
            )

    def put_file(self, bucket: str, key: str, path: Path) -> ObjectInfo:
        """Store a copy of a local file. Raises ``NoSuchBucket``."""
        with path.open("rb") as file:
            return self.put(bucket, key, file)

    def head(self, bucket: str, key: str) -> ObjectInfo | None:
        """The object's description, or None; also when there is no such bucket."""
        record = self.record(bucket, key)
        return record.info if record else None

    def record(self, bucket: str, key: str) -> Record | None:
        """The object's record, or None."""
        if not self.has_bucket(bucket):
            return None
        return Record.load(self._root / bucket / "keys" / keys.record_path(key))

    def path(self, bucket: str, key: str) -> Path:
        """The object's bytes as a local file, to be read only. Raises ``NoSuchKey``.

        The file goes when the object is replaced or deleted: open it soon, or use `open`.
        """
        record = self.record(bucket, key)
        if record is None:
            raise NoSuchKey(f"The specified key does not exist: s3://{bucket}/{key}")
        return self._root / bucket / "blobs" / record.blob

    def open(self, bucket: str, key: str) -> tuple[ObjectInfo, BinaryIO]:
        """The object and its bytes; stays readable when the object is replaced meanwhile.

        Raises:
            NoSuchBucket, NoSuchKey
        """
        folder = self.folder(bucket)
        while record := self.record(bucket, key):
            # A replacement between the two steps removes the blob: then read the new record.
            with suppress(FileNotFoundError):
                return record.info, (folder / "blobs" / record.blob).open("rb")
        raise NoSuchKey(f"The specified key does not exist: s3://{bucket}/{key}")

    def copy(
        self, source: tuple[str, str], target: tuple[str, str], metadata: Mapping[str, str] | None
    ) -> ObjectInfo:
        """Copy an object; ``metadata`` None keeps the source's. Raises ``NoSuchBucket``, ``NoSuchKey``."""
        bucket, key = target
        keys.encoded(key)
        info, data = self.open(*source)
        with data, self.stage(bucket) as (path, file):
            copy_bytes(data, file)
            kept = info.metadata if metadata is None else metadata
            return self.commit(bucket, key, path, file, info.size, info.etag, kept)

    def delete(self, bucket: str, key: str) -> None:
        """Remove it; a missing one is no error. Raises ``NoSuchBucket``."""
        folder = self.folder(bucket)
        target = folder / "keys" / keys.record_path(key)
        with self._commit_lock:
            record = Record.load(target)
            if record is None:
                return
            target.unlink()
            sync_folder(target.parent)
            _prune(target.parent, folder / "keys")
        (folder / "blobs" / record.blob).unlink(missing_ok=True)

    # --- listing ---

    def list(self, bucket: str, prefix: str, after: str = "", limit: int = 1000) -> Sequence[ObjectInfo]:
        """Objects with the prefix and key > after, in key order (UTF-8 bytes). Raises ``NoSuchBucket``."""
        return self.page(bucket, prefix, "", after, limit).objects

    def page(self, bucket: str, prefix: str, delimiter: str, after: str, limit: int) -> Page:
        """One page as S3 lists: keys that go on after ``delimiter`` are rolled into one prefix.

        Raises:
            NoSuchBucket
        """
        root = self.folder(bucket) / "keys"
        start, cut = prefix.encode(), delimiter.encode()
        first = after.encode() + b"\0" if after else b""
        if cut and after.startswith(prefix) and after[len(prefix) :].endswith(delimiter):
            first = _behind(after.encode())  # the page before ended with this rolled-up prefix
        objects: list[ObjectInfo] = []
        prefixes: list[str] = []
        last = ""
        while True:
            for raw, path in keys.walk(root, start, first):
                if len(objects) + len(prefixes) >= limit:
                    return Page(objects, prefixes, last if limit else None)
                at = raw.find(cut, len(start)) if cut else -1
                if at >= 0:
                    rolled = raw[: at + len(cut)]
                    last = rolled.decode()
                    prefixes.append(last)
                    first = _behind(rolled)
                    break  # go on behind everything that the prefix covers
                if record := Record.load(path):
                    objects.append(record.info)
                    last = record.key
            else:
                return Page(objects, prefixes, None)

    # --- for writers: this class and the multipart uploads ---

    def folder(self, bucket: str) -> Path:
        """The bucket's directory. Raises ``NoSuchBucket``."""
        if not self.has_bucket(bucket):
            raise NoSuchBucket(f"The specified bucket does not exist: {bucket}")
        return self._root / bucket

    @contextmanager
    def stage(self, bucket: str) -> Iterator[tuple[Path, BinaryIO]]:
        """A new temporary file in the bucket, open for writing; removed unless it was renamed."""
        path = self.folder(bucket) / "tmp" / f"{self._token}-{next(self._numbers)}"
        try:
            with path.open("xb") as file:
                yield path, file
        finally:
            path.unlink(missing_ok=True)

    def commit(
        self,
        bucket: str,
        key: str,
        staged: Path,
        file: BinaryIO,
        size: int,
        etag: str,
        metadata: Mapping[str, str] | None,
        *,
        upload: str | None = None,
        if_absent: bool = False,
    ) -> ObjectInfo:
        """Make a staged file the object's bytes, durably and at once. Raises ``ObjectExists``."""
        folder = self.folder(bucket)
        file.flush()
        os.fsync(file.fileno())
        record = Record(key, staged.name, size, etag, time.time(), dict(metadata or _NO_METADATA), upload)
        blob = folder / "blobs" / staged.name
        staged.rename(blob)
        try:
            sync_folder(blob.parent)
            self._publish(folder, record, if_absent)
        except BaseException:
            blob.unlink(missing_ok=True)
            raise
        return record.info

    def _publish(self, folder: Path, record: Record, if_absent: bool) -> None:
        target = folder / "keys" / keys.record_path(record.key)
        pending = folder / "tmp" / f"{record.blob}.record"
        write_durably(pending, record.dump())
        try:
            with self._commit_lock:
                old = Record.load(target)
                if old and if_absent:
                    raise ObjectExists(
                        f"At least one of the pre-conditions did not hold: {record.key} exists."
                    )
                made = _make_folders(target.parent, folder / "keys")
                pending.replace(target)
        finally:
            pending.unlink(missing_ok=True)
        for changed in (target.parent, *made):
            sync_folder(changed)
        if old:
            (folder / "blobs" / old.blob).unlink(missing_ok=True)


def copy_bytes(source: BinaryIO, target: BinaryIO) -> None:
    """Copy the rest of an open file inside the kernel where it can (no bytes pass through Python)."""
    target.flush()
    left = os.fstat(source.fileno()).st_size - source.tell()
    try:
        while left > 0:
            copied = os.copy_file_range(source.fileno(), target.fileno(), left)
            if not copied:
                break
            left -= copied
    except OSError:  # not on this kernel or file system; the offsets are where the copy stopped
        shutil.copyfileobj(source, target, COPY_BYTES)
    target.seek(0, os.SEEK_END)


def _behind(raw: bytes) -> bytes:
    """The first byte string that does not start with ``raw`` and sorts after all that do."""
    return raw[:-1] + bytes([raw[-1] + 1])  # UTF-8 never ends in 0xFF


def _records(folder: Path) -> Iterator[Record]:
    for _, path in keys.walk(folder / "keys", b"", b""):
        if record := Record.load(path):
            yield record


def _make_folders(folder: Path, root: Path) -> Sequence[Path]:
    """Make the directory; returns the parents that changed, to be synced."""
    changed = []
    missing = folder
    while missing != root and not missing.is_dir():
        missing = missing.parent
        changed.append(missing)
    folder.mkdir(parents=True, exist_ok=True)
    return changed


def _prune(folder: Path, root: Path) -> None:
    with suppress(OSError):  # not empty: other keys live there
        while folder != root:
            folder.rmdir()
            folder = folder.parent


def _time(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
