"""What a job is given: its channels and its source code.

Everything here can be repeated: a channel that was fetched half is fetched again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from windtunnel_local.service.data import paths
from windtunnel_local.service.data.paths import JobPaths
from windtunnel_local.service.data.source import check_archive
from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.data.uris import is_file, parse_file, parse_s3
from windtunnel_local.service.errors import InputError, NoSuchBucket, NoSuchKey
from windtunnel_local.service.model import Job
from windtunnel_local.service.ports import Mount, ObjectInfo, ObjectStore
from windtunnel_local.service.request import requests

Check = Callable[[], None]
"""Called between files; raises to abandon the download."""

_PAGE = 1000


def provide_channels(job: Job, folders: JobPaths, objects: ObjectStore, check: Check) -> tuple[Mount, ...]:
    """Copy the s3:// channels into every host's folder; returns the mounts of the file:// channels.

    A directory with links that lead nowhere in a container is copied too, as what they point to.

    Hosts of one job share a single copy through hard links where the file system allows.

    Raises:
        InputError: a channel cannot be provided; the text names its URI and the fix.
    """
    mounts: list[Mount] = []
    for channel in requests.channels(job):
        if is_file(requests.channel_uri(channel)):
            path = _local(channel)
            if _has_links_out(path):
                _copy_tree(path, [folders.channel(host, channel["ChannelName"]) for host in job.hosts], check)
            else:
                mounts.append(_mount(job, channel, path, folders))
        else:
            _fetch(job, channel, folders, objects, check)
    return tuple(mounts)


def provide_source(job: Job, folders: JobPaths, objects: ObjectStore) -> None:
    """Put the source tarball in its place, after a look at every member.

    Raises:
        InputError: it is not there, is no archive, or a member would leave its directory.
    """
    uri = requests.source_uri(job)
    if uri is None:
        return
    if is_file(uri):
        original = parse_file(uri)
        if not original.is_file():
            raise _download_failed(f"{uri} is not a file. Hand over the path of a sourcedir.tar.gz")
    else:
        original = _object(uri, objects)
    folders.source.parent.mkdir(parents=True, exist_ok=True)
    copy_file(original, folders.source, uri)
    check_archive(folders.source, uri)


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


# --- file:// ----------------------------------------------------------------


def _local(channel: dict[str, Any]) -> Path:
    """The path of a file:// channel; raises ``InputError``."""
    uri, name = requests.channel_uri(channel), channel["ChannelName"]
    path = parse_file(uri)
    if not path.exists():
        raise _download_failed(
            f"the path of channel {name!r} does not exist: {uri}. Check the path; it must exist on the"
            " machine that runs the backend"
        )
    return path


def _mount(job: Job, channel: dict[str, Any], path: Path, folders: JobPaths) -> Mount:
    """A read-only mount; the mount point is made here, or the engine would make it as root."""
    name = channel["ChannelName"]
    target = f"{paths.CHANNELS}/{name}"
    for host in job.hosts:
        folder = folders.channel(host, name)
        folder.mkdir(parents=True, exist_ok=True)
        if not path.is_dir():
            (folder / path.name).touch()
    return Mount(str(path.resolve()), target if path.is_dir() else f"{target}/{path.name}", read_only=True)


def _has_links_out(top: Path) -> bool:
    """Whether a directory has a link to something outside, or an absolute one, which a mount would break."""
    real = os.path.realpath(top)
    pending = [top] if top.is_dir() else []
    while pending:
        with _listing(pending.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    link = Path(entry.path)
                    inside = Path(os.path.realpath(link)).is_relative_to(real)
                    if link.exists() and (link.readlink().is_absolute() or not inside):
                        return True
                elif entry.is_dir():
                    pending.append(Path(entry.path))
    return False


def _copy_tree(top: Path, folders: list[Path], check: Check) -> None:
    """All files below a directory, links followed; what leads nowhere, or in a circle, is left out."""
    first, *others = folders
    pending: list[tuple[Path, PurePosixPath, tuple[str, ...]]] = [(top, PurePosixPath(), ())]
    while pending:
        folder, below, above = pending.pop()
        above = (*above, os.path.realpath(folder))
        for target in folders:
            _make_folder(target / below, str(folder))
        with _listing(folder) as entries:
            for entry in entries:
                check()
                path, place = Path(entry.path), below / entry.name
                if path.is_dir():
                    if os.path.realpath(path) not in above:
                        pending.append((path, place, above))
                elif path.is_file():
                    copy_file(path, first / place, str(path))
                    for other in others:
                        _share(first / place, other / place, str(path))


@contextmanager
def _listing(folder: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
    try:
        with os.scandir(folder) as entries:
            yield entries
    except PermissionError as error:
        raise _download_failed(f"{error.filename or folder} cannot be read: {error.strerror}") from error


# --- s3:// ------------------------------------------------------------------


def _fetch(job: Job, channel: dict[str, Any], folders: JobPaths, objects: ObjectStore, check: Check) -> None:
    uri, name = requests.channel_uri(channel), channel["ChannelName"]
    bucket, prefix = parse_s3(uri)
    first, *others = [folders.channel(host, name) for host in job.hosts]
    for folder in (first, *others):
        remove_tree(folder)
        folder.mkdir(parents=True)
    found = False
    try:
        for info in list_all(objects, bucket, prefix):
            check()
            found = True
            _place(objects, bucket, info, relative_key(info.key, prefix), (first, *others), uri)
    except NoSuchBucket:
        raise _download_failed(
            f"channel {name!r}: the bucket of {uri} does not exist. Create it and upload the data, or pass a"
            " local path"
        ) from None
    if not found:
        raise _download_failed(
            f'No S3 objects found under S3 URL "{uri}" given in input data source (channel {name!r}). Upload'
            " the data there, correct the prefix, or pass a local path"
        )


def _place(
    objects: ObjectStore, bucket: str, info: ObjectInfo, relative: str, folders: tuple[Path, ...], uri: str
) -> None:
    """One object into the folders of all hosts."""
    parts = [part for part in PurePosixPath(relative).parts if part != "/"]
    if ".." in parts or "\0" in relative:
        raise _download_failed(
            f"{uri}: the key {info.key!r} would leave the channel's folder. Rename the object"
        )
    if relative.endswith("/") or not parts:  # the marker with which consoles make a "folder"
        for folder in folders:
            _make_folder(folder.joinpath(*parts), f"s3://{bucket}/{info.key}")
        return
    try:
        original = objects.path(bucket, info.key)
    except NoSuchKey:
        raise _download_failed(
            f"s3://{bucket}/{info.key} was removed while the job was fetching it. Start the job again"
        ) from None
    first, *others = [folder.joinpath(*parts) for folder in folders]
    copy_file(original, first, f"s3://{bucket}/{info.key}")
    for other in others:
        _share(first, other, uri)


def copy_file(original: Path, target: Path, uri: str) -> None:
    """A copy, never a link: what a script does to its input must not reach the object store.

    Raises:
        InputError: it cannot be read or written; names ``uri``.
    """
    _make_folder(target.parent, uri)
    try:
        shutil.copyfile(original, target)
    except OSError as error:
        raise _cannot_write(uri, target, error) from error


def _make_folder(folder: Path, uri: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(uri, folder, error) from error


def _cannot_write(uri: str, target: Path, error: OSError) -> InputError:
    return _download_failed(f"{uri} could not be written to {target}: {error.strerror or error}")


def _share(first: Path, other: Path, uri: str) -> None:
    other.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(first, other)
    except OSError:
        copy_file(first, other, uri)


def _object(uri: str, objects: ObjectStore) -> Path:
    bucket, key = parse_s3(uri)
    if not objects.has_bucket(bucket) or objects.head(bucket, key) is None:
        raise _download_failed(
            f"the source code is not there: {uri} (NoSuchKey). Upload the tarball before the job is created"
        )
    return objects.path(bucket, key)


def _download_failed(text: str) -> InputError:
    return InputError(f"ClientError: Data download failed: {text}.")
