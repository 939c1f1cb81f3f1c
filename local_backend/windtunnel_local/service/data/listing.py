"""What a channel consists of: its files one by one, from a prefix, a manifest or a local directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from windtunnel_local.service.data.copying import download_failed
from windtunnel_local.service.ground.ports import ObjectInfo, ObjectStore

_PAGE = 1000


@dataclass(frozen=True)
class Item:
    """One file of a channel."""

    place: str
    """Where it goes below the channel's folder; with a slash at its end: an empty folder."""
    uri: str
    """Where it comes from, for messages."""
    original: Callable[[], Path]
    """Its bytes as a local file, to be read only. Raises ``NoSuchKey``; the file may be gone when opened."""


def list_all(objects: ObjectStore, bucket: str, prefix: str) -> Iterator[ObjectInfo]:
    """All objects with a prefix, page by page."""
    after = ""
    while page := objects.list(bucket, prefix, after=after, limit=_PAGE):
        yield from page
        after = page[-1].key


def relative_key(key: str, prefix: str) -> str:
    """Where a key of a channel's prefix goes below the channel's folder, as SageMaker lays it out.

    ``data/train`` gives ``a.csv`` for ``data/train/a.csv``; the key itself gives its
    basename; and ``train2/b.csv`` for ``data/train2/b.csv``, which the prefix names as well.
    """
    if key != prefix and (prefix.endswith("/") or not prefix):
        return key[len(prefix) :]
    if key.startswith(prefix + "/"):
        return key[len(prefix) + 1 :]
    return key[prefix.rfind("/") + 1 :]


def object_item(objects: ObjectStore, bucket: str, key: str, place: str) -> Item:
    """An object as an item."""
    return Item(place, f"s3://{bucket}/{key}", lambda: objects.path(bucket, key))


def prefix_items(objects: ObjectStore, bucket: str, prefix: str) -> Iterator[Item]:
    """All objects that an S3Prefix names, in the order of their keys. Raises ``NoSuchBucket``."""
    for info in list_all(objects, bucket, prefix):
        yield object_item(objects, bucket, info.key, relative_key(info.key, prefix))


def local_items(top: Path) -> Iterator[Item]:
    """All files below a local directory, links followed, or the one file. Broken links are left out.

    In the order of their names within each directory; a link into a circle is left out too.

    Raises:
        InputError: a directory cannot be read.
    """
    if not top.is_dir():
        yield local_item(top, top.name)
        return
    pending: list[tuple[Path, PurePosixPath, tuple[str, ...]]] = [(top, PurePosixPath(), ())]
    while pending:
        folder, below, above = pending.pop()
        above = (*above, os.path.realpath(folder))
        with directory(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        if not found and folder != top:
            yield Item(f"{below}/", str(folder), folder.resolve)
        for entry in found:
            path, place = Path(entry.path), below / entry.name
            if path.is_dir():
                if os.path.realpath(path) not in above:
                    pending.append((path, place, above))
            elif path.is_file():
                yield local_item(path, str(place))


def local_item(path: Path, place: str) -> Item:
    """A local file as an item."""
    return Item(place, str(path), path.resolve)


@contextmanager
def directory(folder: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
    """`os.scandir`; raises ``InputError`` for a directory that cannot be read."""
    try:
        with os.scandir(folder) as entries:
            yield entries
    except PermissionError as error:
        raise download_failed(f"{error.filename or folder} cannot be read: {error.strerror}") from error
