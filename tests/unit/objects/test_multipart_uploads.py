"""Promises of multipart uploads."""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import md5 as _md5
from pathlib import Path

import pytest

from windtunnel_local.objects import FileObjects, MultipartUploads
from windtunnel_local.objects.errors import (
    InvalidPart,
    InvalidPartNumber,
    InvalidPartOrder,
    NoSuchUpload,
    PartTooSmall,
)
from windtunnel_local.objects.parts import UPLOAD_FILE
from windtunnel_local.objects.uploads import MIN_PART_BYTES, Part

md5 = partial(_md5, usedforsecurity=False)
FULL = b"a" * MIN_PART_BYTES


@pytest.fixture
def uploads(objects: FileObjects) -> MultipartUploads:
    return MultipartUploads(objects)


def put(uploads: MultipartUploads, upload: str, number: int, data: bytes) -> Part:
    return Part(number, uploads.put_part("bucket", "k", upload, number, io.BytesIO(data)).etag)


def test_parts_become_one_object(objects: FileObjects, uploads: MultipartUploads) -> None:
    """In order of their numbers, however they came; the ETag is S3's multipart form."""
    upload = uploads.create("bucket", "k", {"content-type": "x/y"})
    second = put(uploads, upload, 2, b"tail")
    first = put(uploads, upload, 1, FULL)
    info = uploads.complete("bucket", "k", upload, [first, second])
    digest = md5(md5(FULL).digest() + md5(b"tail").digest()).hexdigest()
    assert (info.etag, info.size) == (f"{digest}-2", len(FULL) + 4)
    assert objects.path("bucket", "k").read_bytes() == FULL + b"tail"
    assert info.metadata == {"content-type": "x/y"}


def test_parts_become_one_object_where_the_kernel_does_not_copy(
    objects: FileObjects, uploads: MultipartUploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS."""
    monkeypatch.delattr(os, "copy_file_range")
    upload = uploads.create("bucket", "k", {})
    uploads.complete("bucket", "k", upload, [put(uploads, upload, 1, FULL), put(uploads, upload, 2, b"tail")])
    assert objects.path("bucket", "k").read_bytes() == FULL + b"tail"


def test_a_repeated_completion_gets_the_same_answer(uploads: MultipartUploads) -> None:
    """A client that lost the answer may ask again."""
    upload = uploads.create("bucket", "k", {})
    parts = [put(uploads, upload, 1, b"x")]
    assert uploads.complete("bucket", "k", upload, parts) == uploads.complete("bucket", "k", upload, parts)


def test_a_part_sent_again_replaces_the_first(objects: FileObjects, uploads: MultipartUploads) -> None:
    """The earlier ETag is of no use then."""
    upload = uploads.create("bucket", "k", {})
    old, new = put(uploads, upload, 1, b"old"), put(uploads, upload, 1, b"new")
    with pytest.raises(InvalidPart):
        uploads.complete("bucket", "k", upload, [old])
    uploads.complete("bucket", "k", upload, [new])
    assert objects.path("bucket", "k").read_bytes() == b"new"


def test_completion_is_checked(uploads: MultipartUploads) -> None:
    """Order, presence and size of parts are as S3 has them."""
    upload = uploads.create("bucket", "k", {})
    small, last = put(uploads, upload, 1, b"s"), put(uploads, upload, 2, b"l")
    with pytest.raises(PartTooSmall):
        uploads.complete("bucket", "k", upload, [small, last])
    for parts in ([last, small], [small, small]):
        with pytest.raises(InvalidPartOrder):
            uploads.complete("bucket", "k", upload, parts)
    for parts in ([], [Part(3, last.etag)], [Part(1, "../../x")], [Part(1, small.etag, ("crc32", "00"))]):
        with pytest.raises(InvalidPart):
            uploads.complete("bucket", "k", upload, parts)
    with pytest.raises(InvalidPartNumber):
        put(uploads, upload, 10_001, b"")


def test_unknown_uploads_are_refused(uploads: MultipartUploads) -> None:
    """Aborted, never started, another key's, or a path in disguise."""
    upload = uploads.create("bucket", "k", {})
    with pytest.raises(NoSuchUpload):
        uploads.abort("bucket", "other", upload)
    uploads.abort("bucket", "k", upload)
    for name in (upload, "../../x", ""):
        with pytest.raises(NoSuchUpload):
            put(uploads, name, 1, b"")
        with pytest.raises(NoSuchUpload):
            uploads.complete("bucket", "k", name, [])


def completed(uploads: MultipartUploads, *pieces: bytes) -> None:
    upload = uploads.create("bucket", "k", {"a": "b"})
    uploads.complete(
        "bucket", "k", upload, [put(uploads, upload, n, data) for n, data in enumerate(pieces, 1)]
    )


def test_what_is_an_object_cannot_be_aborted(objects: FileObjects, uploads: MultipartUploads) -> None:
    """A server was killed right after the object had appeared: a client that lost the answer may give up."""
    upload = uploads.create("bucket", "k", {})
    description = objects.storage.parts_folder("bucket", upload) / UPLOAD_FILE
    left = description.read_bytes()
    part = put(uploads, upload, 1, b"whole")
    uploads.complete("bucket", "k", upload, [part])
    description.write_bytes(left)
    with pytest.raises(NoSuchUpload):
        uploads.abort("bucket", "k", upload)
    with pytest.raises(NoSuchUpload):
        put(uploads, upload, 1, b"other")
    with objects.open("bucket", "k")[1] as file:
        assert file.read() == b"whole"
    assert uploads.complete("bucket", "k", upload, [part]).size == 5


def test_an_object_in_parts_reads_as_one_file(objects: FileObjects, uploads: MultipartUploads) -> None:
    """From anywhere, across the parts, to the end and beyond."""
    completed(uploads, FULL, b"b" * MIN_PART_BYTES, b"tail")
    info, file = objects.open("bucket", "k")
    with file:
        for start, size in ((0, 3), (MIN_PART_BYTES - 2, 4), (2 * MIN_PART_BYTES - 1, 99), (info.size, 5)):
            file.seek(start)
            whole = FULL + b"b" * MIN_PART_BYTES + b"tail"
            assert file.read(size) == whole[start : start + size]
        file.seek(-2, io.SEEK_END)
        assert (file.read(), file.tell()) == (b"il", info.size)


def test_whoever_reads_keeps_the_parts(
    objects: FileObjects, uploads: MultipartUploads, tmp_path: Path
) -> None:
    """Until the last reader has closed; then nothing of a deleted object is left."""
    completed(uploads, FULL, b"tail")
    readers = [objects.open("bucket", "k")[1] for _ in range(2)]
    objects.delete("bucket", "k")
    for file in readers:
        assert file.read() == FULL + b"tail"
        file.close()
        file.close()
    assert not list((tmp_path / "objects" / "bucket" / "uploads").iterdir())
    assert not list((tmp_path / "objects" / "bucket" / "tmp").iterdir())


def test_parts_are_joined_where_one_file_is_needed(
    objects: FileObjects, uploads: MultipartUploads, tmp_path: Path
) -> None:
    """Once; the object stays what it was, and its parts are still known."""
    completed(uploads, FULL, b"tail")
    before = objects.existing("bucket", "k")
    assert not before.blob
    assert objects.path("bucket", "k") == objects.path("bucket", "k")
    assert objects.path("bucket", "k").read_bytes() == FULL + b"tail"
    after = objects.existing("bucket", "k")
    assert after.info == before.info
    assert [part.size for part in objects.parts_of("bucket", after)] == [len(FULL), 4]
    objects.copy_record(("bucket", objects.existing("bucket", "k")), ("bucket", "copy"), {})
    objects.delete("bucket", "k")
    assert objects.path("bucket", "copy").read_bytes() == FULL + b"tail"
    objects.delete("bucket", "copy")
    for folder in ("blobs", "uploads", "tmp"):
        assert not list((tmp_path / "objects" / "bucket" / folder).iterdir())


def test_50_gib_are_a_matter_of_arithmetic(
    objects: FileObjects, uploads: MultipartUploads, tmp_path: Path
) -> None:
    """Ten parts of S3's largest size, sparse: sizes, positions and ranges hold beyond 32 bits."""
    upload = uploads.create("bucket", "k", {})
    parts = [put(uploads, upload, number, b"%02d" % number) for number in range(1, 11)]
    for path in (tmp_path / "objects" / "bucket" / "uploads" / upload).glob("0*"):
        os.truncate(path, 5 << 30)
    info = uploads.complete("bucket", "k", upload, parts)
    assert info.size == 50 << 30
    _, file = objects.open("bucket", "k")
    with file:
        file.seek((45 << 30) - 2)
        assert file.read(4) == b"\0\x0010"
    objects.copy_record(("bucket", objects.existing("bucket", "k")), ("bucket", "copy"), {})
    assert objects.existing("bucket", "copy").size == 50 << 30


def test_parts_of_one_upload_come_many_at_once(objects: FileObjects, uploads: MultipartUploads) -> None:
    """The same number too: one of them stays."""
    upload = uploads.create("bucket", "k", {})
    bodies = [bytes([number]) * 1000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(partial(put, uploads, upload, 1), bodies))
    ((part, _),) = uploads.parts("bucket", "k", upload)
    uploads.complete("bucket", "k", upload, [Part(1, part.etag)])
    assert objects.path("bucket", "k").read_bytes() in bodies
