"""The record of one object: what it is called, how long it is, and which blob holds its bytes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from windtunnel_local.service.ports import ObjectInfo


@dataclass(frozen=True)
class Record:
    """One object's description, stored as JSON. ``modified``: Unix seconds, UTC."""

    key: str
    blob: str
    size: int
    etag: str
    modified: float
    metadata: Mapping[str, str] = field(default_factory=dict)
    upload: str | None = None
    """The multipart upload that made it: a completion repeated after a lost answer is recognised by it."""

    @property
    def info(self) -> ObjectInfo:
        """The record as the port describes an object."""
        modified = datetime.fromtimestamp(self.modified, timezone.utc)
        return ObjectInfo(self.key, self.size, self.etag, modified, self.metadata)

    def dump(self) -> bytes:
        """The record as JSON."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def load(path: Path) -> Record | None:
        """The record in a file, or None when there is none."""
        try:
            return Record(**json.loads(path.read_bytes()))
        except (FileNotFoundError, NotADirectoryError):
            return None


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
