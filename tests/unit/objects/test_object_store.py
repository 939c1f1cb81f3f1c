"""Promises of the object store."""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel_local.objects import FileObjects, keys
from windtunnel_local.objects.errors import BucketNotEmpty, ConditionFailed, InvalidBucketName, InvalidKey
from windtunnel_local.objects.keys import record_path
from windtunnel_local.objects.records import Guard
from windtunnel_local.service.ground.errors import NoSuchBucket, NoSuchKey

BUCKET = "bucket"

# Few letters, so that keys are often prefixes of one another; and every troublemaker of file systems.
key_texts = st.one_of(
    st.text("a/.é~", min_size=1, max_size=8),
    st.sampled_from(
        ["../x", "a//b", "/", "//", "a/", ".", "..", "\x00", "a\nb", "x" * 1024, "é" * 512, "y" * 64]
    ),
    st.builds(
        lambda head, tail: head + tail,
        st.sampled_from(["p" * 63, "p" * 64, "p" * 65]),
        st.text("a/", max_size=3),
    ),
    st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable()),
)


def body(data: bytes) -> BinaryIO:
    return io.BytesIO(data)


def in_order(keys: dict[str, bytes] | set[str]) -> list[str]:
    return sorted(keys, key=str.encode)


@given(key_texts)
def test_every_key_stays_inside_its_bucket(key: str) -> None:
    """No key names a file outside, and no name is longer than a file system takes."""
    path = record_path(key)
    assert not path.is_absolute()
    assert all(part not in (".", "..") and len(part.encode()) <= 255 for part in path.parts)


@given(st.lists(key_texts, max_size=12), st.text("a/.p", max_size=3), key_texts, st.integers(1, 4))
@settings(max_examples=60)
def test_a_listing_is_the_sorted_keys_of_a_dict(keys: list[str], prefix: str, after: str, limit: int) -> None:
    """Listing, paging and reading agree with a plain dict, whatever the keys."""
    with tempfile.TemporaryDirectory() as folder:
        store = FileObjects(Path(folder))
        store.create_bucket(BUCKET)
        model: dict[str, bytes] = {}
        for number, key in enumerate(keys):
            model[key] = str(number).encode()
            store.put(BUCKET, key, body(model[key]))
        wanted = [k for k in in_order(model) if k.startswith(prefix) and k.encode() > after.encode()]
        assert [info.key for info in store.list(BUCKET, prefix, after)] == wanted
        paged: list[str] = []
        last = after
        while page := store.list(BUCKET, prefix, last, limit):
            paged += [info.key for info in page]
            last = page[-1].key
        assert paged == wanted
        for key, value in model.items():
            assert store.path(BUCKET, key).read_bytes() == value
        for key in keys[::2]:
            store.delete(BUCKET, key)
            model.pop(key, None)
        assert [info.key for info in store.list(BUCKET, "")] == in_order(model)


@given(
    st.lists(key_texts, max_size=12), st.sampled_from(["", "a", "a/", "p"]), st.sampled_from(["/", "a/", "."])
)
@settings(max_examples=60)
def test_rolled_up_prefixes_are_those_of_s3(keys: list[str], prefix: str, delimiter: str) -> None:
    """With a delimiter, each key is shown itself or under exactly one prefix, over any pages."""
    with tempfile.TemporaryDirectory() as folder:
        store = FileObjects(Path(folder))
        store.create_bucket(BUCKET)
        for key in keys:
            store.put(BUCKET, key, body(b""))
        shown: set[str] = set()
        rolled: set[str] = set()
        for key in filter(lambda k: k.startswith(prefix), keys):
            head, found, _ = key[len(prefix) :].partition(delimiter)
            (rolled if found else shown).add(prefix + head + found)
        objects_seen: list[str] = []
        prefixes_seen: list[str] = []
        after: str | None = ""
        while after is not None:
            page = store.page(BUCKET, prefix, delimiter, after, 2)
            objects_seen += [info.key for info in page.objects]
            prefixes_seen += page.prefixes
            after = page.next
        assert objects_seen == in_order(shown)
        assert prefixes_seen == in_order(rolled)


def test_a_put_describes_what_it_stored(objects: FileObjects) -> None:
    """Size, MD5 as ETag, and metadata come back."""
    info = objects.put(BUCKET, "k", body(b"hello"), {"content-type": "text/plain"})
    assert (info.size, info.etag) == (5, hashlib.md5(b"hello", usedforsecurity=False).hexdigest())
    assert objects.head(BUCKET, "k") == info
    assert info.metadata == {"content-type": "text/plain"}


class Breaking:
    """A body that ends in an error."""

    def __init__(self) -> None:
        self.chunks = [b"first"]

    def read(self, _size: int) -> bytes:
        if self.chunks:
            return self.chunks.pop()
        raise ConnectionError("the client went away")


def files_of(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_file() and path.name not in ("created", ".unclean"))


def test_a_broken_body_changes_nothing(objects: FileObjects, tmp_path: Path) -> None:
    """The old object stays, and no temporary file remains."""
    objects.put(BUCKET, "k", body(b"old"))
    before = set(files_of(tmp_path))
    with pytest.raises(ConnectionError):
        objects.put(BUCKET, "k", cast(BinaryIO, Breaking()))
    assert objects.path(BUCKET, "k").read_bytes() == b"old"
    assert set(files_of(tmp_path)) == before


def test_replacing_and_deleting_leave_no_file_behind(objects: FileObjects, tmp_path: Path) -> None:
    """One key is one blob and one record; none is none, and no directory either."""
    for data in (b"1", b"2"):
        objects.put(BUCKET, "deep/er/k", body(data))
    assert len(list(files_of(tmp_path))) == 2
    objects.delete(BUCKET, "deep/er/k")
    objects.delete(BUCKET, "deep/er/k")
    assert not list(files_of(tmp_path))
    assert not list((tmp_path / "objects" / BUCKET / "keys").iterdir())


def test_an_open_object_survives_its_replacement(objects: FileObjects) -> None:
    """A reader sees the bytes it began with."""
    objects.put(BUCKET, "k", body(b"old"))
    info, file = objects.open(BUCKET, "k")
    objects.put(BUCKET, "k", body(b"new!"))
    with file:
        assert (info.size, file.read()) == (3, b"old")


def test_only_if_absent(objects: FileObjects) -> None:
    """A write that asks for a free key does not replace."""
    objects.put(BUCKET, "k", body(b"1"), guard=Guard(absent=True))
    with pytest.raises(ConditionFailed):
        objects.put(BUCKET, "k", body(b"2"), guard=Guard(absent=True))
    assert objects.path(BUCKET, "k").read_bytes() == b"1"


def test_what_a_crash_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    """After a start without a clean end before it, unreferenced files go and objects stay."""
    crashed = FileObjects(tmp_path)
    crashed.create_bucket(BUCKET)
    crashed.put(BUCKET, "k", body(b"kept"))
    (tmp_path / BUCKET / "blobs" / "orphan").write_bytes(b"x")
    (tmp_path / BUCKET / "tmp" / "half").write_bytes(b"x")
    store = FileObjects(tmp_path)
    store.put(BUCKET, "new", body(b"kept too"))
    assert store.recover() == 2
    assert [store.path(BUCKET, k).read_bytes() for k in ("k", "new")] == [b"kept", b"kept too"]
    store.close()
    assert FileObjects(tmp_path).recover() == 0


@pytest.mark.parametrize("name", ["ab", "..", "../x", "Upper", "a_b", "x" * 64, "-ab", "a..b", "a/b", ""])
def test_bucket_names_are_checked(objects: FileObjects, name: str) -> None:
    """No bucket name reaches outside the store."""
    assert not objects.has_bucket(name)
    with pytest.raises(InvalidBucketName):
        objects.create_bucket(name)
    with pytest.raises(NoSuchBucket):
        objects.put(name, "k", body(b""))


@pytest.mark.parametrize("key", ["", "x" * 1025, "é" * 513, "\ud800"])
def test_keys_are_checked(objects: FileObjects, key: str) -> None:
    """Empty keys, keys over 1,024 bytes and text that is none are refused."""
    with pytest.raises(InvalidKey):
        objects.put(BUCKET, key, body(b""))


@pytest.mark.parametrize("key", ["/" * 1024, "a/" * 512, "\x01" * 1024, "a\n" * 512])
def test_the_deepest_and_the_longest_keys_are_keys(objects: FileObjects, key: str) -> None:
    """As many folders as there are slashes."""
    objects.put(BUCKET, "zz", body(b""))
    for _ in range(2):
        objects.put(BUCKET, key, body(b"x"))
        assert [info.key for info in objects.list(BUCKET, "")] == [key, "zz"]
        assert objects.head(BUCKET, key) is not None
    assert objects.recover() == 0
    objects.delete(BUCKET, key)
    assert [info.key for info in objects.list(BUCKET, "")] == ["zz"]
    assert len(list((objects._root / BUCKET / "keys").iterdir())) == 1


def test_what_is_missing_is_named(objects: FileObjects) -> None:
    """Missing buckets and keys raise their own errors, and head returns None."""
    assert objects.head(BUCKET, "k") is None
    assert objects.head("nope", "k") is None
    assert objects.head(BUCKET, "") is None and objects.head(BUCKET, "k" * 1025) is None
    with pytest.raises(NoSuchKey, match="s3://bucket/k"):
        objects.path(BUCKET, "k")
    with pytest.raises(NoSuchBucket, match="nope"):
        objects.list("nope", "")


def test_a_large_listing_stays_true_while_keys_come_and_go(
    objects: FileObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of large directories are kept between pages, and forgotten at each change."""
    monkeypatch.setattr(keys, "_FEW", 10)
    wanted = [f"{number:04d}" for number in range(292, 312)]
    for key in wanted:
        objects.put(BUCKET, key, body(b""))
    assert [info.key for info in objects.list(BUCKET, "")] == wanted
    objects.put(BUCKET, "0300a", body(b""))
    objects.put(BUCKET, "0300/x", body(b""))
    objects.delete(BUCKET, "0293")
    objects.copy_record((BUCKET, objects.existing(BUCKET, "0294")), (BUCKET, "zz"), {})
    wanted = sorted([*wanted, "0300a", "0300/x", "zz"])
    wanted.remove("0293")
    assert [info.key for info in objects.list(BUCKET, "")] == wanted
    assert [info.key for info in objects.list(BUCKET, "0300")] == ["0300", "0300/x", "0300a"]
    assert objects.list(BUCKET, "", after="0310")[0].key == "0311"
    objects.delete(BUCKET, "0300/x")
    assert [info.key for info in objects.list(BUCKET, "0300")] == ["0300", "0300a"]


def test_a_bucket_goes_as_a_whole(tmp_path: Path) -> None:
    """Only an empty one; a write that was under way says that it is gone; a crash in between leaves nothing."""
    store = FileObjects(tmp_path)
    store.create_bucket(BUCKET)
    store.put(BUCKET, "a/b", body(b"x"))
    with pytest.raises(BucketNotEmpty):
        store.delete_bucket(BUCKET)
    store.delete(BUCKET, "a/b")

    class Deleting:
        def __init__(self) -> None:
            self.chunks = [b"first"]

        def read(self, _size: int) -> bytes:
            if not self.chunks:
                return b""
            store.delete_bucket(BUCKET)
            return self.chunks.pop()

    with pytest.raises(NoSuchBucket):
        store.put(BUCKET, "k", cast(BinaryIO, Deleting()))
    assert [path.name for path in tmp_path.iterdir()] == [".unclean"]
    (tmp_path / ".deleted-x").mkdir()
    assert not FileObjects(tmp_path).buckets()
    store = FileObjects(tmp_path)
    assert store.recover() == 1
    assert [path.name for path in tmp_path.iterdir()] == [".unclean"]


def test_tags_change_nothing_else(objects: FileObjects) -> None:
    """Not the bytes, not the time."""
    before = objects.put(BUCKET, "k", body(b"data"), {"a": "b"}, tags={"t": "1"})
    objects.set_tags(BUCKET, "k", {"u": "2"})
    assert objects.head(BUCKET, "k") == before
    assert objects.existing(BUCKET, "k").tags == {"u": "2"}
    assert objects.path(BUCKET, "k").read_bytes() == b"data"
