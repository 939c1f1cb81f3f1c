"""What several clients do to a bucket or an object at the same instant, each at its worst moment."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from windtunnel_local.objects import FileObjects, MultipartUploads
from windtunnel_local.objects import uploads as uploads_module
from windtunnel_local.objects.uploads import MIN_PART_BYTES, Part
from windtunnel_local.service.ground.errors import NoSuchBucket

BUCKET = "bucket"


@pytest.fixture
def uploads(objects: FileObjects) -> MultipartUploads:
    return MultipartUploads(objects)


def put(objects: FileObjects, key: str = "k") -> None:
    objects.put(BUCKET, key, io.BytesIO(b"data"))


def before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, act: Callable[[], object]) -> None:
    """Let something happen once, right before a step of the store."""
    step = getattr(owner, name)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(owner, name, step)
        act()
        return step(*arguments, **options)

    monkeypatch.setattr(owner, name, interrupted)


def after(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, act: Callable[[], object]) -> None:
    """Let something happen once, right after a step of the store."""
    step = getattr(owner, name)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(owner, name, step)
        result = step(*arguments, **options)
        act()
        return result

    monkeypatch.setattr(owner, name, interrupted)


def renew(objects: FileObjects) -> None:
    """The bucket is deleted, and made again at once."""
    objects.delete_bucket(BUCKET)
    objects.create_bucket(BUCKET)


def test_two_deletions_of_a_bucket(objects: FileObjects) -> None:
    """The later one finds none."""
    outcome: list[type[BaseException]] = []

    def delete() -> None:
        try:
            objects.delete_bucket(BUCKET)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            outcome.append(type(error))

    with objects._commit_lock:
        late = threading.Thread(target=delete)
        late.start()
        late.join(0.1)
        (objects.folder(BUCKET)).rename(objects._root / ".deleted-first")
    late.join()
    assert outcome == [NoSuchBucket]


@pytest.mark.parametrize("when", [before, after])
def test_an_object_for_a_bucket_that_is_made_anew(
    objects: FileObjects, monkeypatch: pytest.MonkeyPatch, when: Callable[..., None]
) -> None:
    """It is in neither: an object without its bytes would be read for ever."""
    when(monkeypatch, objects.storage, "settle", lambda: renew(objects))
    with pytest.raises(NoSuchBucket):
        put(objects)
    assert objects.head(BUCKET, "k") is None
    assert not any(path.is_file() for path in (objects.folder(BUCKET) / "blobs").iterdir())


def test_uploads_to_a_bucket_that_goes(
    objects: FileObjects, uploads: MultipartUploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever step it meets, the answer names the bucket."""
    before(monkeypatch, uploads_module, "write_durably", lambda: objects.delete_bucket(BUCKET))
    with pytest.raises(NoSuchBucket):
        uploads.create(BUCKET, "k", {})
    objects.create_bucket(BUCKET)
    upload = uploads.create(BUCKET, "k", {})
    part = Part(1, uploads.put_part(BUCKET, "k", upload, 1, io.BytesIO(b"x")).etag)
    before(monkeypatch, uploads_module, "write_durably", lambda: renew(objects))
    with pytest.raises(NoSuchBucket):
        uploads.complete(BUCKET, "k", upload, [part])
    assert objects.head(BUCKET, "k") is None


def test_an_upload_is_listed_whole_or_not_at_all(
    uploads: MultipartUploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never with half its description."""
    seen: list[int] = []

    def cut_off(path: Path, data: bytes) -> None:
        path.write_bytes(b'{"id": ')
        seen.append(len(uploads.under_way(BUCKET)))
        path.write_bytes(data)

    monkeypatch.setattr(uploads_module, "write_durably", cut_off)
    upload = uploads.create(BUCKET, "k", {})
    assert seen == [0]
    assert [found.id for found in uploads.under_way(BUCKET)] == [upload]


def test_an_object_that_is_deleted_as_it_appears(
    objects: FileObjects, uploads: MultipartUploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its completion went well all the same."""
    upload = uploads.create(BUCKET, "k", {})
    part = Part(1, uploads.put_part(BUCKET, "k", upload, 1, io.BytesIO(b"x")).etag)
    after(monkeypatch, objects, "publish", lambda: objects.delete(BUCKET, "k"))
    assert uploads.complete(BUCKET, "k", upload, [part]).size == 1
    assert objects.head(BUCKET, "k") is None


@pytest.mark.parametrize("in_parts", [False, True])
def test_bytes_that_were_taken_away(objects: FileObjects, uploads: MultipartUploads, in_parts: bool) -> None:
    """Nobody looks for them for ever."""
    if in_parts:
        upload = uploads.create(BUCKET, "k", {})
        data = (b"a" * MIN_PART_BYTES, b"b")
        parts = [uploads.put_part(BUCKET, "k", upload, n, io.BytesIO(d)) for n, d in enumerate(data, 1)]
        uploads.complete(BUCKET, "k", upload, [Part(part.number, part.etag) for part in parts])
        for file in objects.storage.parts_folder(BUCKET, upload).iterdir():
            file.unlink()
    else:
        put(objects)
        objects.path(BUCKET, "k").unlink()
    with pytest.raises(FileNotFoundError):
        objects.open(BUCKET, "k")
    with pytest.raises(FileNotFoundError):
        objects.copy_record((BUCKET, objects.existing(BUCKET, "k")), (BUCKET, "x"), {})
    if in_parts:
        with pytest.raises(FileNotFoundError):
            objects.path(BUCKET, "k")
    put(objects)
    assert objects.path(BUCKET, "k").read_bytes() == b"data"
