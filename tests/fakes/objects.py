"""An object store in a temporary folder."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from windtunnel_local.objects import FileObjects


class FakeObjects(FileObjects):
    """The real one, with these buckets, and what tests ask and store."""

    def __init__(self, root: Path, *buckets: str) -> None:
        super().__init__(root)
        for bucket in buckets:
            self.create_bucket(bucket)

    def put_text(self, bucket: str, key: str, text: str) -> None:
        """What tests store."""
        self.put(bucket, key, BytesIO(text.encode()))

    def read(self, bucket: str, key: str) -> bytes:
        """What tests look at."""
        return self.path(bucket, key).read_bytes()

    def keys(self, bucket: str) -> list[str]:
        """All keys, sorted."""
        return [info.key for info in self.list(bucket, "")]


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
