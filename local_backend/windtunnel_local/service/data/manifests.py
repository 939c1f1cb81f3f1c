"""Lists the files of a channel with S3DataType ManifestFile: a JSON document with a prefix and relative keys.

[{"prefix": "s3://bucket/some/prefix/"}, "relative/path/to/data-1", "relative/path/data-2", ...]
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from windtunnel_local.service.data.copying import download_failed
from windtunnel_local.service.data.listing import Item, local_item, object_item, relative_key
from windtunnel_local.service.data.merged_folders import is_text
from windtunnel_local.service.ground.errors import InputError, NoSuchKey
from windtunnel_local.service.ground.ports import ObjectStore
from windtunnel_local.service.ground.uris import is_file, parse_file, parse_s3

MAX_BYTES = 256 << 20
"""The largest manifest in bytes: it is held in memory while its channel is provided."""

_LONGEST_SHOWN = 100
_FORMAT = '[{"prefix": "s3://bucket/some/prefix/"}, "relative/key-1", "relative/key-2", ...]'


def manifest_items(objects: ObjectStore, uri: str) -> Iterator[Item]:
    """The files that a manifest lists, in its order. A file that is listed twice comes once.

    Raises:
        InputError: the manifest or a file that it lists does not exist, or it is not in AWS's format;
            names the manifest, the entry and what to do.
    """
    prefix, entries = _read(_manifest(objects, uri), uri)
    item = _local if is_file(prefix) else _in_s3
    seen: set[str] = set()
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, str) or not entry or not is_text(entry):
            raise _malformed(uri, f"its element {number} is {_shown(entry)}, not a relative key")
        if entry not in seen:
            seen.add(entry)
            yield item(objects, prefix, entry, uri)


def _manifest(objects: ObjectStore, uri: str) -> Path:
    if is_file(uri):
        path = parse_file(uri)
        if not path.is_file():
            raise download_failed(f"there is no manifest {uri}. Check the path")
        return path
    bucket, key = parse_s3(uri)
    if objects.head(bucket, key) is None:
        raise download_failed(f"there is no manifest {uri} (NoSuchKey). Upload it before the job is created")
    try:
        return objects.path(bucket, key)
    except NoSuchKey:
        raise download_failed(f"the manifest {uri} was removed meanwhile. Start the job again") from None


def _read(path: Path, uri: str) -> tuple[str, list[Any]]:
    """The manifest's prefix, and the elements after it."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise download_failed(
                f"the manifest {uri} has {size} bytes; at most {MAX_BYTES} are read. Split the channel, or name"
                " a common prefix as S3Prefix"
            )
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise download_failed(f"the manifest {uri} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise _malformed(uri, f"it is not JSON ({error})") from error
    if not isinstance(document, list) or not document:
        raise _malformed(uri, f"it is {_shown(document)}, not a list with elements")
    first, *entries = document
    prefix = first.get("prefix") if isinstance(first, dict) else None
    if not isinstance(prefix, str) or not prefix or not is_text(prefix):
        raise _malformed(uri, f"its first element is {_shown(first)}, without a prefix")
    if len(first) != 1:
        raise _malformed(uri, f"its first element has more than a prefix: {_shown(first)}")
    try:
        (parse_file if is_file(prefix) else parse_s3)(prefix)
    except ValueError as error:
        raise _malformed(
            uri, f"its prefix is no {'path' if is_file(prefix) else 'S3 URI'}: {error}"
        ) from None
    if not entries:
        raise _malformed(uri, "it lists no keys behind its prefix")
    return prefix, entries


def _in_s3(objects: ObjectStore, prefix: str, entry: str, uri: str) -> Item:
    bucket, start = parse_s3(prefix)
    key = start + entry
    if not objects.has_bucket(bucket):
        raise download_failed(
            f"the bucket of the prefix {prefix} in the manifest {uri} does not exist. Create it, or correct"
            " the prefix"
        )
    if objects.head(bucket, key) is None:
        raise download_failed(
            f"the manifest {uri} lists {entry!r}, and there is no object {prefix}{entry} (NoSuchKey). Upload"
            " it, or correct the manifest"
        )
    return object_item(objects, bucket, key, relative_key(key, start))


def _local(_: ObjectStore, prefix: str, entry: str, uri: str) -> Item:
    path = parse_file(prefix + entry)
    if not path.is_file():
        raise download_failed(
            f"the manifest {uri} lists {entry!r}, and there is no file {path}. Correct the manifest"
        )
    start = prefix.removeprefix("file://")
    return local_item(path, relative_key(start + entry, start))


def _malformed(uri: str, reason: str) -> InputError:
    return download_failed(f"the manifest {uri} is not valid: {reason}. It must look like {_FORMAT}")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(map(repr, list(value)[:4])) or 'nothing'}"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return json.dumps(value)[:_LONGEST_SHOWN]
