"""Promises of multipart uploads."""

from __future__ import annotations

import io
from functools import partial
from hashlib import md5 as _md5
from pathlib import Path

import pytest

from windtunnel_local.objects import FileObjects, MultipartUploads
from windtunnel_local.objects.errors import InvalidPart, NoSuchUpload, PartTooSmall
from windtunnel_local.objects.uploads import MIN_PART_BYTES, Part

md5 = partial(_md5, usedforsecurity=False)
FULL = b"a" * MIN_PART_BYTES


@pytest.fixture
def objects(tmp_path: Path) -> FileObjects:
    store = FileObjects(tmp_path)
    store.create_bucket("bucket")
    return store


@pytest.fixture
def uploads(objects: FileObjects) -> MultipartUploads:
    return MultipartUploads(objects)


def put(uploads: MultipartUploads, upload: str, number: int, data: bytes) -> Part:
    return Part(number, uploads.put_part("bucket", "k", upload, number, io.BytesIO(data)))


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
    for parts in ([last, small], [], [small, small], [Part(3, last.etag)], [Part(1, "../../x")]):
        with pytest.raises(InvalidPart):
            uploads.complete("bucket", "k", upload, parts)
    with pytest.raises(InvalidPart):
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
