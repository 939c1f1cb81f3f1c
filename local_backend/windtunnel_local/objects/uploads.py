"""Multipart uploads: each part is a file, and completion makes one object of them.

    <bucket>/uploads/<id>/upload.json       key, metadata, tags, checksum; until the upload is completed or aborted
    <bucket>/uploads/<id>/<number>-<md5>... one part (`parts`)
    <bucket>/uploads/<id>/parts.json        after completion: which parts the object consists of

A part's file name holds its number and ETag, so a completion finds exactly the parts that it names. Completion
moves no bytes: one rename makes the object's record point to the folder, however large the object is.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from windtunnel_local.objects import keys
from windtunnel_local.objects.errors import (
    InvalidPart,
    InvalidPartNumber,
    InvalidPartOrder,
    NoSuchUpload,
    PartTooSmall,
)
from windtunnel_local.objects.files import FileObjects
from windtunnel_local.objects.parts import PARTS_FILE, UPLOAD_FILE, StoredPart, dumped, tidy
from windtunnel_local.objects.records import ANY, Guard, Record, sync_folder, write_durably
from windtunnel_local.objects.storage import receive
from windtunnel_local.service.ground.ports import ObjectInfo

MAX_PARTS = 10_000
MIN_PART_BYTES = 5 << 20
_UPLOAD_ID = re.compile(r"[0-9a-f]{32}")
_LOCKS = 64

Checksum = tuple[str, str]
"""The algorithm, and the digest in hexadecimal."""


@dataclass(frozen=True)
class Part:
    """A part as the client names it at completion. ``number``: 1 to 10,000."""

    number: int
    etag: str
    checksum: Checksum | None = None


@dataclass(frozen=True)
class Upload:
    """An unfinished upload. ``algorithm``, ``kind``: of the checksum that the object shall have, if any."""

    id: str
    key: str
    initiated: float
    metadata: Mapping[str, str]
    tags: Mapping[str, str] = field(default_factory=dict)
    algorithm: str | None = None
    kind: str | None = None


Finish = Callable[[Upload, Sequence[StoredPart]], Mapping[str, str]]
"""Called at completion: returns what to add to the object's metadata, or raises to refuse."""


class MultipartUploads:
    """Multipart uploads into a `FileObjects`. All calls block; all are thread-safe."""

    def __init__(self, objects: FileObjects) -> None:
        """Keep the parts in the store's buckets."""
        self._objects = objects
        # Parts of an upload may arrive at the same time. These locks keep completion and the storing of a part apart.
        self._locks = [threading.Lock() for _ in range(_LOCKS)]

    def create(
        self,
        bucket: str,
        key: str,
        metadata: Mapping[str, str],
        *,
        tags: Mapping[str, str] | None = None,
        algorithm: str | None = None,
        kind: str | None = None,
    ) -> str:
        """Start an upload; returns its id. Raises ``NoSuchBucket``, ``InvalidKey``."""
        keys.encoded(key)
        upload = Upload(
            self._objects.storage.new_id(),
            key,
            time.time(),
            dict(metadata),
            dict(tags or {}),
            algorithm,
            kind,
        )
        folder = self._objects.folder(bucket) / "uploads" / upload.id
        try:
            with self._objects.bucket_there(bucket):
                folder.mkdir()
                pending = folder / f"{UPLOAD_FILE}.new"
                write_durably(pending, json.dumps(asdict(upload)).encode())
                pending.rename(folder / UPLOAD_FILE)  # atomic: a listing finds a whole upload or none
            sync_folder(folder)
            sync_folder(folder.parent)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return upload.id

    def find(self, bucket: str, key: str, upload: str) -> Upload:
        """Find an unfinished upload. Raises ``NoSuchUpload``, ``NoSuchBucket``."""
        return self._open(bucket, key, upload)[1]

    def under_way(self, bucket: str) -> Sequence[Upload]:
        """All unfinished uploads of a bucket, sorted by key, then by start. Raises ``NoSuchBucket``."""
        found = []
        with self._objects.bucket_there(bucket):
            folders = list((self._objects.folder(bucket) / "uploads").iterdir())
        for folder in folders:
            if (upload := _load(folder)) is not None:
                found.append(upload)
        return sorted(found, key=lambda upload: (upload.key.encode(), upload.initiated, upload.id))

    def parts(self, bucket: str, key: str, upload: str) -> Sequence[tuple[StoredPart, float]]:
        """The stored parts, sorted by number, each with its time in Unix seconds. Raises ``NoSuchUpload``."""
        folder, _ = self._open(bucket, key, upload)
        return sorted(_stored(folder).values(), key=lambda found: found[0].number)

    def put_part(
        self,
        bucket: str,
        key: str,
        upload: str,
        number: int,
        data: BinaryIO,
        checksum: Callable[[], Checksum | None] = lambda: None,
    ) -> StoredPart:
        """Store the rest of a stream as a part, in place of an earlier part of that number.

        ``data`` is read to its end; if reading raises, nothing is stored. ``checksum`` is called
        afterwards, for the checksum that was verified.

        Raises:
            NoSuchUpload
            InvalidPartNumber: the number is not 1 to 10,000.
        """
        folder, _ = self._open(bucket, key, upload)
        if not 1 <= number <= MAX_PARTS:
            raise InvalidPartNumber(f"Part number must be an integer between 1 and {MAX_PARTS}, inclusive.")
        with self._objects.stage(bucket) as (path, file):
            size, md5 = receive(data, file)
            file.flush()
            os.fsync(file.fileno())
            part = StoredPart(number, size, md5, *(checksum() or ()))
            with self._lock(upload), self._objects.bucket_there(bucket):
                self._open(bucket, key, upload)  # raises if it ended while the part was received
                path.rename(folder / part.name)
                for old in folder.glob(f"{number:05d}-*"):
                    if old.name != part.name:
                        old.unlink(missing_ok=True)
        sync_folder(folder)
        return part

    def complete(
        self,
        bucket: str,
        key: str,
        upload: str,
        parts: Sequence[Part],
        *,
        guard: Guard = ANY,
        finish: Finish = lambda _upload, _parts: {},
    ) -> ObjectInfo:
        """Complete the upload: make the object of its parts. Idempotent: a second call returns the same object.

        Raises:
            NoSuchUpload, InvalidPart, InvalidPartOrder, PartTooSmall
            ConditionFailed, NoSuchKey: the guard refuses.
        """
        with self._lock(upload):
            record = self._objects.record(bucket, key)
            if record is not None and record.upload == upload:
                tidy(self._objects.storage.parts_folder(bucket, upload))
                return record.info
            folder, found = self._open(bucket, key, upload)
            with self._objects.bucket_there(bucket):
                chosen = _chosen(folder, parts)
                metadata = {**found.metadata, **finish(found, chosen)}
                write_durably(folder / PARTS_FILE, dumped(chosen))
            sync_folder(folder)
            digest = hashlib.md5(b"".join(bytes.fromhex(p.etag) for p in chosen), usedforsecurity=False)
            record = Record(
                key=key,
                blob="",
                size=sum(part.size for part in chosen),
                etag=f"{digest.hexdigest()}-{len(chosen)}",
                modified=time.time(),
                metadata=metadata,
                upload=upload,
                parts=upload,
                tags=found.tags,
            )
            self._objects.publish(bucket, record, guard)
            tidy(folder)  # after a failure here, `FileObjects.recover` does it
        return record.info

    def abort(self, bucket: str, key: str, upload: str) -> None:
        """Abort the upload and remove its parts. Raises ``NoSuchUpload``."""
        with self._lock(upload), self._objects.bucket_there(bucket):
            folder, _ = self._open(bucket, key, upload)
            (folder / UPLOAD_FILE).unlink()  # from here on the upload is gone, also after a crash
            sync_folder(folder)
        self._objects.storage.drop_folder(folder)

    def _open(self, bucket: str, key: str, upload: str) -> tuple[Path, Upload]:
        folder = self._objects.folder(bucket) / "uploads" / upload
        found = _load(folder) if _UPLOAD_ID.fullmatch(upload) else None
        # Also gone if a crash came after completion, before upload.json was removed: its parts are the object's now.
        record = None if found is None else self._objects.record(bucket, key)
        if found is None or found.key != key or (record is not None and record.upload == upload):
            raise NoSuchUpload(
                f"The specified multipart upload does not exist: {upload!r}. It may be completed or aborted."
            )
        return folder, found

    def _lock(self, upload: str) -> threading.Lock:
        return self._locks[hash(upload) % _LOCKS]


def _load(folder: Path) -> Upload | None:
    try:
        return Upload(**json.loads((folder / UPLOAD_FILE).read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _stored(folder: Path) -> Mapping[int, tuple[StoredPart, float]]:
    """The stored parts by number. After a crash a replaced part may still exist: the later one counts."""
    found: dict[int, tuple[StoredPart, float]] = {}
    for path in folder.iterdir():
        part = StoredPart.named(path)
        if part is None:
            continue
        try:
            modified = path.stat().st_mtime
        except FileNotFoundError:
            continue
        if part.number not in found or found[part.number][1] < modified:
            found[part.number] = part, modified
    return found


def _chosen(folder: Path, parts: Sequence[Part]) -> Sequence[StoredPart]:
    """The stored parts that a completion names, checked for order, ETag, checksum and size."""
    numbers = [part.number for part in parts]
    if not parts:
        raise InvalidPart("A completion lists at least one part.")
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        raise InvalidPartOrder(
            "The list of parts was not in ascending order. Parts must be ordered by part number."
        )
    stored = _stored(folder)
    chosen = []
    for part in parts:
        found, _ = stored.get(part.number, (None, 0.0))
        if found is None or found.etag != part.etag:
            raise InvalidPart(f"Part {part.number} with ETag {part.etag!r} was not uploaded.")
        if part.checksum is not None and part.checksum != (found.algorithm, found.digest):
            raise InvalidPart(
                f"Part {part.number} was uploaded with another checksum than {part.checksum[0]}'s."
            )
        if part is not parts[-1] and found.size < MIN_PART_BYTES:
            raise PartTooSmall(
                "Your proposed upload is smaller than the minimum allowed size: part "
                f"{part.number} has {found.size} of {MIN_PART_BYTES} bytes."
            )
        chosen.append(found)
    return chosen
