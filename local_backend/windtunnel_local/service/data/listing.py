"""Lists the files of a channel one by one, from an S3 prefix or a local directory; manifests use it too."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from windtunnel_local.service.data.copying import Check, download_failed
from windtunnel_local.service.ground.errors import NoSuchKey
from windtunnel_local.service.ground.ports import ObjectInfo, ObjectStore

_PAGE = 1000
_TRIES = 5


@dataclass(frozen=True)
class Item:
    """One file of a channel."""

    place: str
    """Its path below the channel's folder; a slash at the end means an empty folder."""
    uri: str
    """The URI or path of the original, for messages."""
    original: Callable[[], Path]
    """Returns the local file with its bytes; only read it. Raises ``NoSuchKey``. The file may be gone when opened."""

    def take(self, how: Callable[[Path, Path, str, Check], None], target: Path, check: Check) -> bool:
        """Copy or link the file to ``target``. If the original is replaced meanwhile, the new one is taken.

        ``how``: `copy_file` or `link_file`. Returns whether the original exists. Raises ``InputError``.
        """
        with suppress(NoSuchKey):
            for _ in range(_TRIES):
                with suppress(FileNotFoundError):
                    how(self.original(), target, self.uri, check)
                    return True
        return False


def list_all(objects: ObjectStore, bucket: str, prefix: str) -> Iterator[ObjectInfo]:
    """All objects with a prefix; lists them page by page."""
    after = ""
    while page := objects.list(bucket, prefix, after=after, limit=_PAGE):
        yield from page
        after = page[-1].key


def relative_key(key: str, prefix: str) -> str:
    """The path of an object below the channel's folder, as SageMaker derives it from key and prefix.

    With the prefix ``data/train``, the key ``data/train/a.csv`` gives ``a.csv``; the key ``data/train2/b.csv``,
    which has the prefix as well, gives ``train2/b.csv``. A key that equals the prefix gives its last part.
    """
    if key != prefix and (prefix.endswith("/") or not prefix):
        return key[len(prefix) :]
    if key.startswith(prefix + "/"):
        return key[len(prefix) + 1 :]
    return key[prefix.rfind("/") + 1 :]


def object_item(objects: ObjectStore, bucket: str, key: str, place: str) -> Item:
    """The item of an object."""
    return Item(place, f"s3://{bucket}/{key}", lambda: objects.path(bucket, key))


def prefix_items(objects: ObjectStore, bucket: str, prefix: str) -> Iterator[Item]:
    """The items of all objects with an S3Prefix, in the order of their keys. Raises ``NoSuchBucket``."""
    for info in list_all(objects, bucket, prefix):
        yield object_item(objects, bucket, info.key, relative_key(info.key, prefix))


def local_items(top: Path) -> Iterator[Item]:
    """The items of all files below a local directory, or of one local file. Follows links.

    Files are sorted by name within each directory. Broken links, and links that would make a loop, are left out.

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
    """The item of a local file."""
    return Item(place, str(path), path.resolve)


@contextmanager
def directory(folder: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
    """`os.scandir`; raises ``InputError`` for a directory that cannot be read."""
    try:
        with os.scandir(folder) as entries:
            yield entries
    except PermissionError as error:
        raise download_failed(f"{error.filename or folder} cannot be read: {error.strerror}") from error
