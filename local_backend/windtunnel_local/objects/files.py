"""The object store on the file system.

    <root>/<bucket>/keys/...      one small record for each key (`keys`, `records`)
    <root>/<bucket>/blobs/<id>    the bytes of an object; never changed once they are there
    <root>/<bucket>/uploads/<id>/ multipart uploads (`uploads`), and the parts of objects made by them (`parts`)
    <root>/<bucket>/tmp/          files that are being written or removed

An object's bytes are written to ``tmp``, flushed to disk and renamed to ``blobs``. The object
becomes visible when its record is renamed over the old record. So at any moment, also after a
power cut, a key has its old bytes or its new ones. Files that no record refers to after a crash
are removed by `recover`. One process writes (the server's lock ensures that); its threads share
this object. Since the bytes never change, a copy is a hard link to them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from windtunnel_local.objects import buckets, keys, listing, parts
from windtunnel_local.objects.buckets import Bucket
from windtunnel_local.objects.errors import ConditionFailed, InvalidKey
from windtunnel_local.objects.records import ANY, Guard, Record, sync_folder, write_durably
from windtunnel_local.objects.recovery import remove_remains
from windtunnel_local.objects.storage import Storage, receive
from windtunnel_local.service.ground.errors import NoSuchBucket, NoSuchKey
from windtunnel_local.service.ground.ports import ObjectInfo


class FileObjects:
    """Implements `ObjectStore` and what S3's API needs beyond it. All calls block; all are thread-safe.

    ``metadata`` of an object are the HTTP headers returned with it, by lower-case name.
    """

    def __init__(self, root: Path) -> None:
        """Open the store; create ``root`` if it is missing."""
        root.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._unclean = root / ".unclean"
        self._crashed = self._unclean.exists()
        self._unclean.touch()
        self._commit_lock = threading.Lock()
        self._joining = threading.Lock()
        self._names = keys.Names()
        self.storage = Storage(root)

    def close(self) -> None:
        """Record a clean end, so that the next start need not search for remains. Call when nobody writes."""
        if not self.storage.busy and not self._crashed:
            self._unclean.unlink(missing_ok=True)

    def recover(self) -> int:
        """After a crash, remove files that no key refers to; returns how many. Safe while requests are served."""
        if not self._crashed:
            return 0
        removed = buckets.remove_deleted(self._root)
        for bucket in self.buckets():
            folder = self._root / bucket.name
            removed += remove_remains(folder, self.storage.token, self.storage.drop_folder)
        self._crashed = False
        return removed

    # --- buckets ---

    def buckets(self) -> Sequence[Bucket]:
        """All buckets, sorted by name."""
        return buckets.found(self._root)

    def create_bucket(self, bucket: str, place: str = "") -> None:
        """Create the bucket, with the place (region) asked for. Idempotent. Raises ``InvalidBucketName``."""
        with self._commit_lock:
            buckets.create(self._root, bucket, place)

    def delete_bucket(self, bucket: str) -> None:
        """Remove an empty bucket, with its unfinished uploads. Raises ``NoSuchBucket``, ``BucketNotEmpty``."""
        with self._commit_lock:
            grave = buckets.bury(self.folder(bucket), self.storage.new_name())
        buckets.remove(grave)

    def has_bucket(self, bucket: str) -> bool:
        """Whether the bucket exists."""
        return buckets.exists(self._root, bucket)

    def folder(self, bucket: str) -> Path:
        """The bucket's directory. Raises ``NoSuchBucket``."""
        if not self.has_bucket(bucket):
            raise NoSuchBucket(f"The specified bucket does not exist: {bucket}")
        return self._root / bucket

    # --- one object ---

    def put(
        self,
        bucket: str,
        key: str,
        data: BinaryIO,
        metadata: Mapping[str, str] | None = None,
        *,
        guard: Guard = ANY,
        tags: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        """Store the rest of the stream as an object. If reading raises, nothing is stored.

        Raises:
            NoSuchBucket, InvalidKey
            ConditionFailed, NoSuchKey: the guard refuses.
        """
        # Early, before the bytes are read; `publish` makes the check that counts.
        guard.check(key, self.record(bucket, key))
        with self.stage(bucket) as (path, file):
            size, md5 = receive(data, file)
            record = Record(
                key,
                path.name,
                size,
                md5,
                time.time(),
                dict(metadata or {}),
                tags=dict(tags or {}),
            )
            return self.commit(bucket, record, path, file, guard)

    def head(self, bucket: str, key: str) -> ObjectInfo | None:
        """The object's description. None if the object or the bucket is missing, or the key is not valid."""
        try:
            record = self.record(bucket, key)
        except InvalidKey:
            return None
        return record.info if record else None

    def record(self, bucket: str, key: str) -> Record | None:
        """The object's record, or None if the object or bucket is missing. Raises ``InvalidKey``."""
        path = keys.record_path(key)
        return Record.load(self._root / bucket / "keys" / path) if self.has_bucket(bucket) else None

    def existing(self, bucket: str, key: str) -> Record:
        """The object's record. Raises ``NoSuchBucket``, ``NoSuchKey``, ``InvalidKey``."""
        self.folder(bucket)
        record = self.record(bucket, key)
        if record is None:
            raise NoSuchKey(f"The specified key does not exist: s3://{bucket}/{key}")
        return record

    def path(self, bucket: str, key: str) -> Path:
        """The object's bytes as a local file, for reading only.

        The file is removed when the object is replaced or deleted: open it soon, or use `open`.
        The parts of an object that was uploaded in parts are joined first, once: about a second for each GiB.

        Raises ``NoSuchKey``, and ``FileNotFoundError`` if the bytes are gone.
        """
        before = None
        while True:
            record = self.record(bucket, key)
            if record is None:
                raise NoSuchKey(f"The specified key does not exist: s3://{bucket}/{key}")
            if record.blob:
                return self.storage.blob(bucket, record)
            # If the object was replaced or deleted meanwhile, look again.
            with self._joining, suppress(ConditionFailed):
                if self.record(bucket, key) == record:
                    try:
                        self._join(bucket, record)
                    except FileNotFoundError:
                        if record == before:
                            raise
            before = record

    def open(self, bucket: str, key: str) -> tuple[ObjectInfo, BinaryIO]:
        """The object and its bytes, which stay readable when the object is replaced meanwhile.

        Raises:
            NoSuchBucket, NoSuchKey
        """
        record, file = self.open_record(bucket, key)
        return record.info, file

    def open_record(self, bucket: str, key: str) -> tuple[Record, BinaryIO]:
        """As `open`, with the object's whole record. Raises ``FileNotFoundError`` if its bytes are gone."""
        before = None
        while True:
            record = self.existing(bucket, key)
            try:
                return record, self.storage.open(bucket, record)
            except FileNotFoundError:
                # A replacement between the two steps removes the bytes: then read the new record.
                if record == before:
                    raise
            before = record

    def parts_of(self, bucket: str, record: Record) -> Sequence[parts.StoredPart]:
        """The parts of an object; empty if it was not uploaded in parts. Raises ``FileNotFoundError``."""
        return parts.loaded(self.storage.parts_folder(bucket, record.parts)) if record.parts else ()

    def copy_record(
        self,
        source: tuple[str, Record],
        target: tuple[str, str],
        metadata: Mapping[str, str],
        *,
        tags: Mapping[str, str] | None = None,
        guard: Guard = ANY,
        etag: str | None = None,
    ) -> ObjectInfo:
        """Copy an object whose record was read before. Bytes are linked, not copied.

        Args:
            source: bucket and record of the object.
            target: bucket and key of the copy.
            metadata: of the copy.
            tags: of the copy; None: those of the source.
            guard: the condition on the target.
            etag: of the copy; None: that of the source.

        Raises:
            FileNotFoundError: the source was replaced meanwhile.
            NoSuchBucket, InvalidKey
            ConditionFailed, NoSuchKey: the guard refuses.
        """
        bucket, key = target
        guard.check(key, self.record(bucket, key))
        self.folder(bucket)
        original = source[1]
        record = replace(
            original,
            key=key,
            etag=etag or original.etag,
            modified=time.time(),
            metadata=dict(metadata),
            tags=original.tags if tags is None else dict(tags),
            upload=None,
        )
        record = self.storage.linked((source[0], original), bucket, record)
        try:
            self.publish(bucket, record, guard)
        except BaseException:
            self._drop_unless_used(bucket, record)
            raise
        return record.info

    def set_tags(self, bucket: str, key: str, tags: Mapping[str, str]) -> None:
        """Replace the object's tags and nothing else. Raises ``NoSuchBucket``, ``NoSuchKey``."""
        while True:
            record = self.existing(bucket, key)
            with suppress(ConditionFailed):
                self.publish(bucket, replace(record, tags=dict(tags)), Guard(unchanged=record))
                return

    def delete(self, bucket: str, key: str, guard: Guard = ANY) -> None:
        """Remove the object; a missing one is no error. Raises ``NoSuchBucket``, and what the guard raises."""
        folder = self.folder(bucket)
        target = folder / "keys" / keys.record_path(key)
        with self._commit_lock:
            record = Record.load(target)
            guard.check(key, record)
            if record is None:
                return
            target.unlink()
            left = self._prune(target.parent, folder / "keys")
        sync_folder(left)
        self.storage.drop(bucket, record)

    # --- listing ---

    def list(self, bucket: str, prefix: str, after: str = "", limit: int = 1000) -> Sequence[ObjectInfo]:
        """Objects with the prefix and key > after, in key order (UTF-8 bytes). Raises ``NoSuchBucket``."""
        return self.page(bucket, prefix, "", after, limit).objects

    def page(self, bucket: str, prefix: str, delimiter: str, after: str, limit: int) -> listing.Page:
        """One page of a listing, with S3's rules for prefix and delimiter. Raises ``NoSuchBucket``."""
        return listing.page(self.folder(bucket) / "keys", prefix, delimiter, after, limit, self._names)

    # --- for writers: this class and the multipart uploads ---

    def commit(
        self, bucket: str, record: Record, staged: Path, file: BinaryIO, guard: Guard = ANY
    ) -> ObjectInfo:
        """Store an object whose bytes are in a staged file, durably and atomically. Raises what the guard raises."""
        try:
            with self.bucket_there(bucket):
                self.storage.settle(bucket, record, staged, file)
            self.publish(bucket, record, guard)
        except BaseException:
            self._drop_unless_used(bucket, record)
            raise
        return record.info

    def publish(self, bucket: str, record: Record, guard: Guard = ANY) -> None:
        """Put the record at its key: the one step in which an object appears or changes."""
        folder = self.folder(bucket)
        target = folder / "keys" / keys.record_path(record.key)
        pending = folder / "tmp" / f"{self.storage.new_name()}.record"
        try:
            with self.bucket_there(bucket):
                write_durably(pending, record.dump())
            with self._commit_lock, self.bucket_there(bucket):
                self.folder(bucket)  # raises if the bucket was deleted meanwhile
                old = Record.load(target)
                guard.check(record.key, old)
                self.storage.require(bucket, record)  # raises if the bytes are gone with an earlier bucket
                made = self._make_folders(target.parent, folder / "keys")
                pending.replace(target)
                self._names.changed(target.parent)
        finally:
            pending.unlink(missing_ok=True)
        for changed in (target.parent, *made):
            sync_folder(changed)
        if old and old.place != record.place:
            self.storage.drop(bucket, old)

    @contextmanager
    def bucket_there(self, bucket: str) -> Iterator[None]:
        """Raise ``NoSuchBucket`` instead of ``FileNotFoundError`` if the bucket is deleted during a write.

        A new bucket of the same name may exist by then, without the files that were written.
        """
        try:
            yield
        except FileNotFoundError as error:
            raise NoSuchBucket(
                f"The specified bucket does not exist: {bucket} was deleted meanwhile."
            ) from error

    @contextmanager
    def stage(self, bucket: str) -> Iterator[tuple[Path, BinaryIO]]:
        """A new temporary file in the bucket, removed at the end unless it was renamed. Raises ``NoSuchBucket``."""
        self.folder(bucket)
        with ExitStack() as stack:
            with self.bucket_there(bucket):
                staged = stack.enter_context(self.storage.stage(bucket))
            yield staged

    def _join(self, bucket: str, record: Record) -> None:
        """Join an object's parts into one file. Raises ``ConditionFailed`` if the object was changed meanwhile."""
        described = self.parts_of(bucket, record)
        with self.stage(bucket) as (path, file):
            self.storage.join(bucket, record, file)
            joined = replace(record, blob=path.name, parts=self.storage.new_id())
            self.storage.describe(bucket, joined.parts, described)
            self.commit(bucket, joined, path, file, Guard(unchanged=record))

    def _drop_unless_used(self, bucket: str, record: Record) -> None:
        # If the failure came after the rename, the record is in place and its bytes must stay.
        found = self.record(bucket, record.key)
        if found is None or found.place != record.place:
            self.storage.drop(bucket, record)

    def _make_folders(self, folder: Path, root: Path) -> Sequence[Path]:
        """Create the directory with its parents; returns the directories that changed, to be synced."""
        missing = []
        while folder != root and not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for one in reversed(missing):  # not `parents=True`, which recurses for each level
            one.mkdir()
            self._names.changed(one.parent)
        return [one.parent for one in missing]

    def _prune(self, folder: Path, root: Path) -> Path:
        """Remove directories that have become empty; returns the first that is left."""
        self._names.changed(folder)
        with suppress(OSError):  # not empty: it holds other keys
            while folder != root:
                folder.rmdir()
                folder = folder.parent
                self._names.changed(folder)
        return folder
