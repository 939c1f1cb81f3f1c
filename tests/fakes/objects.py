"""An object store in a temporary folder."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote

from windtunnel_local.service.ground.errors import NoSuchBucket, NoSuchKey
from windtunnel_local.service.ground.ports import ObjectInfo


class FakeObjects:
    """`ObjectStore`: one flat folder a bucket, keys percent-encoded."""

    def __init__(self, root: Path, *buckets: str) -> None:
        """Make the buckets."""
        self._root = root
        for bucket in buckets:
            self.create_bucket(bucket)

    def create_bucket(self, bucket: str) -> None:
        """Create it if it is not there."""
        (self._root / bucket).mkdir(parents=True, exist_ok=True)

    def has_bucket(self, bucket: str) -> bool:
        """Whether it exists."""
        return (self._root / bucket).is_dir()

    def put(
        self, bucket: str, key: str, data: BinaryIO, metadata: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        """Store the stream's rest."""
        assert not metadata, "the service writes no metadata"
        path = self._file(bucket, key)
        temporary = path.with_name(f".{path.name}")
        with temporary.open("wb") as file:
            shutil.copyfileobj(data, file)
        temporary.replace(path)
        return self._info(key, path)

    def put_text(self, bucket: str, key: str, text: str) -> None:
        """What tests store."""
        self.put(bucket, key, BytesIO(text.encode()))

    def head(self, bucket: str, key: str) -> ObjectInfo | None:
        """The object's description, or None."""
        path = self._file(bucket, key)
        return self._info(key, path) if path.is_file() else None

    def path(self, bucket: str, key: str) -> Path:
        """The object's bytes."""
        path = self._file(bucket, key)
        if not path.is_file():
            raise NoSuchKey(key)
        return path

    def read(self, bucket: str, key: str) -> bytes:
        """What tests look at."""
        return self.path(bucket, key).read_bytes()

    def keys(self, bucket: str) -> list[str]:
        """All keys, sorted."""
        return [info.key for info in self.list(bucket, "")]

    def list(self, bucket: str, prefix: str, after: str = "", limit: int = 1000) -> Sequence[ObjectInfo]:
        """Objects with the prefix and key > after, in key order."""
        if not self.has_bucket(bucket):
            raise NoSuchBucket(bucket)
        files = (p for p in (self._root / bucket).iterdir() if not p.name.startswith("."))
        found = {unquote(path.name): path for path in files}
        keys = sorted((k for k in found if k.startswith(prefix) and k > after), key=str.encode)
        infos = []
        for key in keys[:limit]:
            with suppress(FileNotFoundError):  # deleted since
                infos.append(self._info(key, found[key]))
        return infos

    def delete(self, bucket: str, key: str) -> None:
        """Remove it."""
        self._file(bucket, key).unlink(missing_ok=True)

    def _file(self, bucket: str, key: str) -> Path:
        if not self.has_bucket(bucket):
            raise NoSuchBucket(bucket)
        return self._root / bucket / quote(key, safe="")

    def _info(self, key: str, path: Path) -> ObjectInfo:
        data = path.read_bytes()
        modified = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
        return ObjectInfo(key, len(data), hashlib.md5(data, usedforsecurity=False).hexdigest(), modified)


class ReplacedObjects(FakeObjects):
    """Each object is replaced by another job right after it was looked up for the first time."""

    def __init__(self, root: Path, *buckets: str) -> None:
        super().__init__(root, *buckets)
        self._looked_up: set[str] = set()

    def path(self, bucket: str, key: str) -> Path:
        """The object's bytes, at the first call those of before, which are gone."""
        path = super().path(bucket, key)
        if key in self._looked_up:
            return path
        self._looked_up.add(key)
        return path.with_name("gone")
