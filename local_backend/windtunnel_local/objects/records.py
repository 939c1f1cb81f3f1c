"""The record of one object (its key, size and ETag, and where its bytes are), and conditions of writes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from windtunnel_local.objects.errors import ConditionFailed
from windtunnel_local.service.ground.errors import NoSuchKey
from windtunnel_local.service.ground.ports import ObjectInfo


@dataclass(frozen=True)
class Record:
    """One object's description, stored as JSON. ``size`` in bytes; ``modified`` in Unix seconds."""

    key: str
    blob: str
    """The file that holds the bytes; empty if they are in several files, in the folder ``parts``."""
    size: int
    etag: str
    modified: float
    metadata: Mapping[str, str] = field(default_factory=dict)
    upload: str | None = None
    """The id of the multipart upload that made the object, to recognise a completion that is sent again."""
    parts: str | None = None
    """The folder with ``parts.json``, if the object was uploaded in parts (see `parts`)."""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def info(self) -> ObjectInfo:
        """The object's description as the port `ObjectStore` has it."""
        modified = datetime.fromtimestamp(self.modified, timezone.utc)
        return ObjectInfo(self.key, self.size, self.etag, modified, self.metadata)

    @property
    def place(self) -> tuple[str, str | None]:
        """Where the bytes are. They are kept as long as the key's record names this place."""
        return self.blob, self.parts

    def dump(self) -> bytes:
        """The record as JSON."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def load(path: Path) -> Record | None:
        """Read the record in a file; None if there is no such file."""
        try:
            return Record(**json.loads(path.read_bytes()))
        except (FileNotFoundError, NotADirectoryError):
            return None


@dataclass(frozen=True)
class Guard:
    """The condition of a write: what must be at its key. All fields that are set must hold."""

    absent: bool = False
    etag: str | None = None
    """The ETag of the object; ``*``: any object."""
    unchanged: Record | None = None

    def check(self, key: str, found: Record | None) -> None:
        """Check ``found``, the key's record. Raises ``ConditionFailed``; ``NoSuchKey`` if an object is missing."""
        if self.absent and found is not None:
            raise ConditionFailed(
                f"At least one of the pre-conditions did not hold: {key} exists.", "If-None-Match"
            )
        if self.etag is not None:
            if found is None:
                raise NoSuchKey(f"The specified key does not exist: {key}")
            if self.etag not in ("*", found.etag):
                raise ConditionFailed(
                    f"At least one of the pre-conditions did not hold: the ETag of {key} is {found.etag}.",
                    "If-Match",
                )
        if self.unchanged is not None and found != self.unchanged:
            raise ConditionFailed(f"{key} was changed meanwhile.")


ANY = Guard()


def write_durably(path: Path, data: bytes) -> None:
    """Write a new file and wait until it is on the disk. The caller renames it into place."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make renames and removals in a directory durable. A directory that is gone is no error."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
