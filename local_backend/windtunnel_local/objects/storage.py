"""The files that hold objects' bytes: write, flush, link, join and remove them. Knows no keys.

The names of files start with a token of the process: after a crash the next process knows which are not its own.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

from windtunnel_local.objects import parts
from windtunnel_local.objects.pins import Pins
from windtunnel_local.objects.records import Record, sync_folder, write_durably
from windtunnel_local.service.ground.errors import is_full_disk

_COPY_BYTES = 1 << 20


class Storage:
    """The files of all buckets below ``root``. All calls block; all are thread-safe."""

    def __init__(self, root: Path) -> None:
        """Use an existing directory."""
        self._root = root
        self.token = uuid.uuid4().hex[:12]
        self._numbers = itertools.count()
        self._pins = Pins()

    @property
    def busy(self) -> bool:
        """Whether removed parts still wait for their last reader."""
        return self._pins.waiting

    def new_name(self) -> str:
        """A new file name, unique."""
        return f"{self.token}-{next(self._numbers)}"

    def new_id(self) -> str:
        """A new id for an upload or a folder of parts: 32 hexadecimal digits."""
        return self.token + uuid.uuid4().hex[:20]

    def blob(self, bucket: str, record: Record) -> Path:
        """The file that holds a record's bytes, if ``record.blob`` is set."""
        return self._root / bucket / "blobs" / record.blob

    def parts_folder(self, bucket: str, name: str | None) -> Path:
        """The folder of an upload, or of an object's parts."""
        return self._root / bucket / "uploads" / str(name)

    @contextmanager
    def stage(self, bucket: str) -> Iterator[tuple[Path, BinaryIO]]:
        """A new temporary file in the bucket, open for writing; removed at the end unless it was renamed."""
        path = self._root / bucket / "tmp" / self.new_name()
        try:
            with path.open("xb") as file:
                yield path, file
        finally:
            path.unlink(missing_ok=True)

    def settle(self, bucket: str, record: Record, staged: Path, file: BinaryIO) -> None:
        """Make a staged file the record's blob, durably."""
        file.flush()
        os.fsync(file.fileno())
        blob = self.blob(bucket, record)
        staged.rename(blob)
        sync_folder(blob.parent)

    def require(self, bucket: str, record: Record) -> None:
        """Raise ``FileNotFoundError`` if the record's bytes are missing."""
        described = self.parts_folder(bucket, record.parts) / parts.PARTS_FILE
        (self.blob(bucket, record) if record.blob else described).stat()

    def open(self, bucket: str, record: Record) -> BinaryIO:
        """Open the record's bytes, which stay readable until the file is closed. Raises ``FileNotFoundError``."""
        if record.blob:
            return self.blob(bucket, record).open("rb")
        folder = self.parts_folder(bucket, record.parts)
        self._pins.pin(folder)
        try:
            reader = parts.PartsReader(folder, parts.loaded(folder), lambda: self._pins.unpin(folder))
        except BaseException:
            self._pins.unpin(folder)
            raise
        return cast(BinaryIO, reader)

    def describe(self, bucket: str, name: str | None, described: Sequence[parts.StoredPart]) -> Path:
        """Create a folder of parts with its ``parts.json``. The caller adds the parts themselves."""
        folder = self.parts_folder(bucket, name)
        folder.mkdir()
        try:
            write_durably(folder / parts.PARTS_FILE, parts.dumped(described))
            sync_folder(folder)
            sync_folder(folder.parent)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    def join(self, bucket: str, record: Record, file: BinaryIO) -> None:
        """Write all parts of a record to a file. Raises ``FileNotFoundError``."""
        folder = self.parts_folder(bucket, record.parts)
        for part in parts.loaded(folder):
            with (folder / part.name).open("rb") as piece:
                copy_bytes(piece, file)

    def linked(self, source: tuple[str, Record], bucket: str, record: Record) -> Record:
        """Link the bytes of ``source`` (bucket, record) under new names; returns ``record`` with these names.

        Raises:
            FileNotFoundError: the source is gone.
        """
        source_bucket, original = source
        made = replace(
            record,
            blob=self.new_name() if original.blob else "",
            parts=self.new_id() if original.parts else None,
        )
        try:
            if original.blob:
                blob = self.blob(bucket, made)
                link(self.blob(source_bucket, original), blob)
                sync_folder(blob.parent)
            if original.parts:
                old = self.parts_folder(source_bucket, original.parts)
                described = parts.loaded(old)
                new = self.describe(bucket, made.parts, described)
                for part in () if original.blob else described:
                    link(old / part.name, new / part.name)
                sync_folder(new)
        except BaseException:
            self.drop(bucket, made)
            raise
        return made

    def drop(self, bucket: str, record: Record) -> None:
        """Remove the bytes of a record that was deleted or replaced."""
        if record.blob:
            self.blob(bucket, record).unlink(missing_ok=True)
        if record.parts:
            self.drop_folder(self.parts_folder(bucket, record.parts))

    def drop_folder(self, folder: Path) -> None:
        """Remove a folder of parts as soon as nobody reads it."""
        self._pins.remove(folder, folder.parent.parent / "tmp" / self.new_name())


def receive(data: BinaryIO, file: BinaryIO) -> tuple[int, str]:
    """Write the rest of the stream to the file; returns its size in bytes, and its MD5."""
    digest = hashlib.md5(usedforsecurity=False)
    size = 0
    while chunk := data.read(_COPY_BYTES):
        file.write(chunk)
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


def link(source: Path, target: Path) -> None:
    """Make a hard link, or a copy where no link is possible. Raises ``FileNotFoundError``."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # too many links, or another file system
        with source.open("rb") as original, target.open("xb") as copy:
            copy_bytes(original, copy)
            os.fsync(copy.fileno())


def copy_bytes(source: BinaryIO, target: BinaryIO) -> None:
    """Copy the rest of an open file, within the kernel if possible (no bytes pass through Python)."""
    target.flush()
    left = os.fstat(source.fileno()).st_size - source.tell()
    try:
        while left > 0:
            copied = os.copy_file_range(source.fileno(), target.fileno(), left)
            if not copied:
                break
            left -= copied
    except (AttributeError, OSError) as error:  # not on macOS, and not between all file systems
        if isinstance(error, OSError) and is_full_disk(error):
            raise OSError(error.errno, error.strerror, target.name) from error  # with the file's name
        shutil.copyfileobj(source, target, _COPY_BYTES)  # the offsets are where the copy stopped
    target.seek(0, os.SEEK_END)
