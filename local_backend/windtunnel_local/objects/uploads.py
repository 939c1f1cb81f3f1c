"""Multipart uploads: parts as files until completion joins them into one object.

    <bucket>/uploads/<id>/upload.json        key and metadata
    <bucket>/uploads/<id>/<number>-<md5>     one part

A part's name holds its number and ETag, so a completion finds exactly what it names.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from windtunnel_local.objects import keys
from windtunnel_local.objects.errors import InvalidPart, NoSuchUpload, PartTooSmall
from windtunnel_local.objects.files import COPY_BYTES, FileObjects, copy_bytes
from windtunnel_local.objects.records import sync_folder, write_durably
from windtunnel_local.service.ports import ObjectInfo

MAX_PARTS = 10_000
MIN_PART_BYTES = 5 << 20
_UPLOAD_ID = re.compile(r"[0-9a-f]{32}")
_ETAG = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Part:
    """A part as the client names it at completion. ``number``: 1 to 10,000."""

    number: int
    etag: str


class MultipartUploads:
    """Multipart uploads into a `FileObjects`. All calls block; all are thread-safe."""

    def __init__(self, objects: FileObjects) -> None:
        """Keep parts beside the objects of the store."""
        self._objects = objects

    def create(self, bucket: str, key: str, metadata: Mapping[str, str]) -> str:
        """Start an upload; returns its id. Raises ``NoSuchBucket``, ``InvalidKey``."""
        keys.encoded(key)
        upload = uuid.uuid4().hex
        folder = self._objects.folder(bucket) / "uploads" / upload
        folder.mkdir()
        write_durably(folder / "upload.json", json.dumps({"key": key, "metadata": dict(metadata)}).encode())
        sync_folder(folder)
        sync_folder(folder.parent)
        return upload

    def put_part(self, bucket: str, key: str, upload: str, number: int, data: BinaryIO) -> str:
        """Store the stream's rest as a part, replacing an earlier one of that number; returns its ETag.

        Raises:
            NoSuchUpload
            InvalidPart: the number is not 1 to 10,000.
        """
        folder, _ = self._open(bucket, key, upload)
        if not 1 <= number <= MAX_PARTS:
            raise InvalidPart(f"Part number must be an integer between 1 and {MAX_PARTS}, inclusive.")
        digest = hashlib.md5(usedforsecurity=False)
        with self._objects.stage(bucket) as (path, file):
            while chunk := data.read(COPY_BYTES):
                file.write(chunk)
                digest.update(chunk)
            file.flush()
            os.fsync(file.fileno())
            target = folder / f"{number:05d}-{digest.hexdigest()}"
            try:
                path.rename(target)
            except FileNotFoundError as error:  # aborted or completed while the part came in
                raise _no_such_upload(upload) from error
        for old in folder.glob(f"{number:05d}-*"):
            if old != target:
                old.unlink(missing_ok=True)
        sync_folder(folder)
        return digest.hexdigest()

    def complete(
        self, bucket: str, key: str, upload: str, parts: Sequence[Part], *, if_absent: bool = False
    ) -> ObjectInfo:
        """Join the parts into the object. Idempotent: repeated, it answers with the object it made.

        Raises:
            NoSuchUpload, InvalidPart, PartTooSmall, ObjectExists
        """
        try:
            folder, metadata = self._open(bucket, key, upload)
        except NoSuchUpload:
            record = self._objects.record(bucket, key)
            if record and record.upload == upload:
                return record.info
            raise
        paths = _chosen(folder, parts)
        digest = hashlib.md5(b"".join(bytes.fromhex(part.etag) for part in parts), usedforsecurity=False)
        with self._objects.stage(bucket) as (path, file):
            for part in paths:
                with part.open("rb") as source:
                    copy_bytes(source, file)
            etag = f"{digest.hexdigest()}-{len(parts)}"
            info = self._objects.commit(
                bucket, key, path, file, file.tell(), etag, metadata, upload=upload, if_absent=if_absent
            )
        shutil.rmtree(folder, ignore_errors=True)
        return info

    def abort(self, bucket: str, key: str, upload: str) -> None:
        """Drop the upload and its parts. Raises ``NoSuchUpload``."""
        folder, _ = self._open(bucket, key, upload)
        shutil.rmtree(folder, ignore_errors=True)

    def _open(self, bucket: str, key: str, upload: str) -> tuple[Path, Mapping[str, str]]:
        folder = self._objects.folder(bucket) / "uploads" / upload
        if not _UPLOAD_ID.fullmatch(upload):
            raise _no_such_upload(upload)
        try:
            document = json.loads((folder / "upload.json").read_bytes())
        except FileNotFoundError as error:
            raise _no_such_upload(upload) from error
        if document["key"] != key:
            raise _no_such_upload(upload)
        metadata: Mapping[str, str] = document["metadata"]
        return folder, metadata


def _chosen(folder: Path, parts: Sequence[Part]) -> Sequence[Path]:
    """The files of the parts named, checked for order and size."""
    numbers = [part.number for part in parts]
    if not parts or any(later <= earlier for earlier, later in pairwise(numbers)):
        raise InvalidPart("A completion lists at least one part, by ascending part number, each once.")
    paths = []
    for part in parts:
        path = folder / f"{part.number:05d}-{part.etag}"
        if not _ETAG.fullmatch(part.etag) or not path.is_file():
            raise InvalidPart(f"Part {part.number} with ETag {part.etag!r} was not uploaded.")
        if part is not parts[-1] and path.stat().st_size < MIN_PART_BYTES:
            raise PartTooSmall(f"Part {part.number} is smaller than the minimum of {MIN_PART_BYTES} bytes.")
        paths.append(path)
    return paths


def _no_such_upload(upload: str) -> NoSuchUpload:
    return NoSuchUpload(
        f"The specified multipart upload does not exist: {upload!r}. It may be completed or aborted."
    )
