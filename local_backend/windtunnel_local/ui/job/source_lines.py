"""The lines of a job's script around the line that a diagnostic names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from windtunnel_local.service.data.source import read_script
from windtunnel_local.service.ground.errors import InputError, ObjectError
from windtunnel_local.service.ground.ports import ObjectStore
from windtunnel_local.service.ground.uris import parse_s3

_PLACE = re.compile(r"(?P<file>[^\s:]{1,200}):(?P<line>[0-9]{1,7})")
_AROUND = 3
_LONGEST = 300
_MOST_BYTES = 1 << 20
_LARGEST_ARCHIVE_BYTES = 64 << 20
_KEPT = 32


@dataclass(frozen=True)
class SourceLine:
    """A line of a script. ``named``: it is the line that the diagnostic names."""

    number: int
    text: str
    named: bool


class Scripts:
    """Reads scripts from the source archives of jobs, and caches the last few. Thread-safe."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._kept = lru_cache(_KEPT)(self._read)

    def around(self, description: Mapping[str, Any], place: str) -> list[SourceLine]:
        """The line of ``train.py:88`` and some around it; empty if the archive or the line cannot be found."""
        named = _PLACE.fullmatch(place)
        uri = _archive(description)
        if named is None or uri is None:
            return []
        text, number = self._script(uri, named["file"]), int(named["line"])
        lines = text.decode("utf-8", "replace").splitlines()
        if not 1 <= number <= len(lines):
            return []
        first, last = max(1, number - _AROUND), min(len(lines), number + _AROUND)
        return [SourceLine(at, lines[at - 1][:_LONGEST], at == number) for at in range(first, last + 1)]

    def _script(self, uri: str, file: str) -> bytes:
        try:
            bucket, key = parse_s3(uri)
        except ValueError:
            return b""
        found = self._objects.head(bucket, key)
        if found is None or found.size > _LARGEST_ARCHIVE_BYTES:
            return b""
        return self._kept(bucket, key, found.etag, file)

    def _read(self, bucket: str, key: str, _etag: str, file: str) -> bytes:
        """The script in the archive that has this ETag now."""
        try:
            path = self._objects.path(bucket, key)
            return read_script(path, f"s3://{bucket}/{key}", file, _MOST_BYTES) or b""
        except (InputError, ObjectError):
            return b""


def _archive(description: Mapping[str, Any]) -> str | None:
    """The S3 URI of the job's source archive; with network isolation it is a channel's. None if there is none."""
    try:
        directory = json.loads(
            description.get("HyperParameters", {}).get("sagemaker_submit_directory", "null")
        )
    except (ValueError, RecursionError):
        return None
    if isinstance(directory, str) and directory.startswith("s3://"):
        return directory
    for channel in description.get("InputDataConfig", []):
        source = channel["DataSource"].get("S3DataSource", {})
        if channel["ChannelName"] == "code" and str(source.get("S3Uri")).startswith("s3://"):
            return str(source["S3Uri"])
    return None
