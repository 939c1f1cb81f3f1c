"""Provides a job's inputs: its channels and its source code.

Everything here can be repeated: a channel that was only fetched in part is fetched again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from windtunnel_local.service.data.copying import (
    Check,
    cannot_write,
    copy_file,
    download_failed,
    link_file,
    make_folder,
    share,
)
from windtunnel_local.service.data.listing import Item, directory, local_items, prefix_items
from windtunnel_local.service.data.manifests import manifest_items
from windtunnel_local.service.data.sharding import is_sharded, shared_out
from windtunnel_local.service.data.source import provide_archive
from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.ground import job_paths
from windtunnel_local.service.ground.containers import Mount
from windtunnel_local.service.ground.errors import NoSuchBucket
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.job_paths import JobPaths
from windtunnel_local.service.ground.ports import ObjectStore
from windtunnel_local.service.ground.uris import is_file, parse_file, parse_s3
from windtunnel_local.service.request import requests
from windtunnel_local.service.request.cluster import channel_hosts

HostMounts = Mapping[str, tuple[Mount, ...]]
"""By host, the mounts of its container."""


def provide_channels(
    job: Job,
    folders: JobPaths,
    objects: ObjectStore,
    check: Check,
    *,
    read_only_mounts: bool = True,
    in_views: bool = False,
) -> HostMounts:
    """Provide the channels of every host, as files in its folder or as mounts; return the mounts.

    In File mode, objects of S3 are copied; the hosts share one copy through hard links if the file
    system allows. FastFile, and files that a manifest or a shard selects from a local directory,
    become a folder of hard links, mounted read-only: this needs no copy, and the files stay even if
    the object is replaced or deleted meanwhile. A local directory is mounted itself; but if it has
    links that would be broken in a container, it is copied, with the files they point to.

    Args:
        job: the job.
        folders: the job's folders.
        objects: the object store.
        check: called between files and within long ones; raises to abandon.
        read_only_mounts: whether the runner enforces read-only mounts; if not, all objects of S3
            are copied.
        in_views: for a container that is kept, which has the folder of all views mounted: return no
            mounts, and make each channel a link into that folder. A local directory becomes a view, too.

    Raises:
        InputError: a channel cannot be provided; the message names its URI and what to do.
    """
    mounts: dict[str, tuple[Mount, ...]] = dict.fromkeys(job.hosts, ())
    for channel in requests.channels(job):
        provided = _Channel(job, channel, folders, objects, check, read_only_mounts, in_views).provide()
        for host, mount in provided.items():
            if in_views:
                folder = folders.channel(host, channel["ChannelName"])
                folder.rmdir()
                folder.symlink_to(PurePosixPath(job_paths.VIEWS, channel["ChannelName"]))
            else:
                mounts[host] += (mount,)
    return mounts


def provide_source(job: Job, folders: JobPaths, objects: ObjectStore) -> None:
    """Check every member of the source tarball, and write it to its place in the job's folder.

    Raises:
        InputError: the tarball does not exist or is not an archive, or a member would lead out of its directory.
    """
    uri = requests.source_uri(job)
    if uri is None:
        return
    try:
        original = parse_file(uri) if is_file(uri) else _object(uri, objects)
    except ValueError as error:
        raise download_failed(f"the source code's address {str(error).rstrip('.')}") from None
    if not original.is_file():
        raise download_failed(f"{uri} is not a file. Hand over the path of a sourcedir.tar.gz")
    folders.source.parent.mkdir(parents=True, exist_ok=True)
    provide_archive(original, folders.source, uri)


class _Channel:
    """Provides one channel to the hosts that get it."""

    def __init__(
        self,
        job: Job,
        channel: dict[str, Any],
        folders: JobPaths,
        objects: ObjectStore,
        check: Check,
        read_only_mounts: bool,
        in_views: bool,
    ) -> None:
        self._channel = channel
        self._name = str(channel["ChannelName"])
        self._uri = requests.channel_uri(channel)
        self._manifest = channel["DataSource"]["S3DataSource"]["S3DataType"] == "ManifestFile"
        self._hosts = channel_hosts(job, channel)
        self._folders = folders
        self._objects = objects
        self._check = check
        self._in_views = in_views
        self._linked = read_only_mounts and (
            requests.input_mode(job, channel) == "FastFile" or is_file(self._uri)
        )

    def provide(self) -> dict[str, Mount]:
        """Put all files into the hosts' folders; return the mounts by host."""
        for host in self._hosts:
            for folder in (self._folders.channel(host, self._name), self._folders.view(host, self._name)):
                remove_tree(folder)
            self._folders.channel(host, self._name).mkdir(parents=True)
        if is_file(self._uri) and not self._manifest:
            return self._local()
        if self._manifest:
            return self._place_all(manifest_items(self._objects, self._uri))
        return self._prefix()

    def _prefix(self) -> dict[str, Mount]:
        try:
            found = prefix_items(self._objects, *parse_s3(self._uri))
            first = next(found, None)
            if first is not None:
                return self._place_all(chain([first], found))
        except NoSuchBucket:
            raise download_failed(
                f"channel {self._name!r}: the bucket of {self._uri} does not exist. Create it and upload the"
                " data, or pass a local path"
            ) from None
        raise download_failed(
            f'No S3 objects found under S3 URL "{self._uri}" given in input data source (channel'
            f" {self._name!r}). Upload the data there, correct the prefix, or pass a local path"
        )

    def _local(self) -> dict[str, Mount]:
        """Provide a local directory or file: as a mount, unless hosts get only parts of it or it must be copied."""
        path = parse_file(self._uri)
        if not path.exists():
            raise download_failed(
                f"the path of channel {self._name!r} does not exist: {self._uri}. Check the path; it must exist"
                " on the machine that runs the backend"
            )
        if self._in_views or (is_sharded(self._channel) and len(self._hosts) > 1):
            return self._place_all(local_items(path))
        if _has_links_out(path):
            self._linked = False
            return self._place_all(local_items(path))
        target = f"{job_paths.CHANNELS}/{self._name}"
        if not path.is_dir():
            # Make the mount point here, because otherwise the engine makes it as root.
            for host in self._hosts:
                (self._folders.channel(host, self._name) / path.name).touch()
            target = f"{target}/{path.name}"
        return dict.fromkeys(self._hosts, Mount(str(path.resolve()), target, read_only=True))

    def _place_all(self, items: Iterator[Item]) -> dict[str, Mount]:
        """Copy or link every file into the folders of its hosts; return the mounts by host."""
        roots = {host: self._root(host) for host in self._hosts}
        for root in roots.values():
            root.mkdir(parents=True, exist_ok=True)
        files = self._files(items, tuple(roots.values()))
        for (item, parts), hosts in shared_out(files, self._hosts, self._channel):
            first, *others = [roots[host].joinpath(*parts) for host in hosts]
            if self._linked:
                for target in (first, *others):
                    self._take(item, link_file, target)
            else:
                self._take(item, copy_file, first)
                for other in others:
                    share(first, other, item.uri, self._check)
        if not self._linked:
            return {}
        target_in_container = f"{job_paths.CHANNELS}/{self._name}"
        return {host: Mount(str(root), target_in_container, read_only=True) for host, root in roots.items()}

    def _files(
        self, items: Iterator[Item], roots: tuple[Path, ...]
    ) -> Iterator[tuple[Item, tuple[str, ...]]]:
        """The files with the parts of their paths in the channel. Creates empty folders for every host meanwhile."""
        for item in items:
            self._check()
            parts = tuple(part for part in PurePosixPath(item.place).parts if part != "/")
            if ".." in parts or "\0" in item.place:
                raise download_failed(
                    f"channel {self._name!r}: {item.uri} would leave the channel's folder, as {item.place!r}."
                    " Rename the object"
                )
            if parts and not item.place.endswith("/"):
                yield item, parts
            else:  # an empty object whose key ends with a slash: so S3 consoles make a "folder"
                for root in roots:
                    make_folder(root.joinpath(*parts), item.uri)

    def _take(self, item: Item, how: Callable[[Path, Path, str, Check], None], target: Path) -> None:
        """Copy or link one file to a free place."""
        if os.path.lexists(target):  # otherwise one object's copy would overwrite another's
            raise cannot_write(item.uri, target, FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)))
        if not item.take(how, target, self._check):
            raise download_failed(
                f"{item.uri} was removed while the job was fetching it. Start the job again"
            )

    def _root(self, host: str) -> Path:
        return (self._folders.view if self._linked else self._folders.channel)(host, self._name)


def _has_links_out(top: Path) -> bool:
    """Whether a directory has a link that a mount would break: an absolute one, or one that leads out of it."""
    real = os.path.realpath(top)
    pending = [top] if top.is_dir() else []
    while pending:
        with directory(pending.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    link = Path(entry.path)
                    inside = Path(os.path.realpath(link)).is_relative_to(real)
                    if link.exists() and (link.readlink().is_absolute() or not inside):
                        return True
                elif entry.is_dir():
                    pending.append(Path(entry.path))
    return False


def _object(uri: str, objects: ObjectStore) -> Path:
    bucket, key = parse_s3(uri)
    if objects.head(bucket, key) is None:
        raise download_failed(
            f"the source code is not there: {uri} (NoSuchKey). Upload the tarball before the job is created"
        )
    return objects.path(bucket, key)
