"""Copies a Neuron compile cache from S3 to a job's hosts, and new entries back.

On SageMaker the container itself reads and writes the cache, entry by entry. Here a container cannot
reach the object store, so the backend copies the cache before the start and at the end, as it does
with checkpoints. The backend knows only a cache that the job's Environment names.
"""

from __future__ import annotations

from collections.abc import Callable

from windtunnel_local.service.data.copying import copy_file
from windtunnel_local.service.data.listing import list_all, object_item
from windtunnel_local.service.data.merged_folders import is_text
from windtunnel_local.service.data.untrusted_files import open_regular, require_room
from windtunnel_local.service.ground.errors import InputError
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.job_paths import JobPaths
from windtunnel_local.service.ground.ports import ObjectStore
from windtunnel_local.service.ground.uris import parse_s3
from windtunnel_local.service.request.requests import cache_uri

_ENTRIES = "neuronxcc-"
_UNFINISHED = (".lock",)
_DRAFT = ".draft-"


def fetch_cache(job: Job, folders: JobPaths, objects: ObjectStore, check: Callable[[], None]) -> None:
    """Copy the cache into every host's folder. Repeatable.

    Raises:
        InputError: the cache's URI is not valid, or its bucket does not exist.
    """
    uri = cache_uri(job)
    if uri is None:
        return
    bucket, prefix = _place(uri)
    if not objects.has_bucket(bucket):
        raise InputError(
            f"ClientError: The Neuron compile cache {uri} cannot be used: there is no bucket {bucket}. Create it"
            " first, or name an existing one in NEURON_COMPILE_CACHE_URL."
        )
    for host in job.hosts:
        (folders.neuron_cache(host) / bucket).mkdir(parents=True, exist_ok=True)
    for info in list_all(objects, bucket, prefix + _ENTRIES):
        check()
        parts = info.key.split("/")
        if ".." in parts or "\0" in info.key or not parts[-1]:
            continue  # not an entry of the cache
        item = object_item(objects, bucket, info.key, info.key)
        for host in job.hosts:
            # An object that was removed since it was listed is skipped.
            item.take(copy_file, folders.neuron_cache(host) / bucket / info.key, check)


def store_cache(job: Job, folders: JobPaths, objects: ObjectStore) -> None:
    """Store the files that the hosts have added or changed, however the job ended. Deletes nothing.

    Raises:
        ObjectError, OSError: a file cannot be stored.
    """
    uri = cache_uri(job)
    if uri is None:
        return
    bucket, prefix = _place(uri)
    known = {info.key: info.size for info in list_all(objects, bucket, prefix + _ENTRIES)}
    for host in job.hosts:
        root = folders.neuron_cache(host) / bucket
        if not root.is_dir() or not folders.holds(root):
            continue
        # `model.done` goes last, because it marks an entry as complete for other readers.
        for path in sorted(root.rglob("*"), key=lambda found: (found.name == "model.done", found)):
            key = path.relative_to(root).as_posix()
            if not key.startswith(prefix) or path.suffix in _UNFINISHED or path.name.startswith(_DRAFT):
                continue
            if not is_text(key) or path.is_symlink() or not path.is_file():
                continue
            if known.get(key) == path.stat().st_size:
                continue
            require_room([path], folders)
            with open_regular(path, folders) as file:
                objects.put(bucket, key, file)
            known[key] = path.stat().st_size


def _place(uri: str) -> tuple[str, str]:
    """The bucket and the prefix, which is empty or ends with a slash."""
    try:
        bucket, key = parse_s3(uri)
    except ValueError as error:
        raise InputError(f"ClientError: The Neuron compile cache cannot be used: {error}") from error
    parts = [part for part in key.split("/") if part]
    if ".." in parts or "." in parts:
        raise InputError(
            f"ClientError: The Neuron compile cache {uri!r} leads out of its bucket. Change the address."
        )
    return bucket, "".join(f"{part}/" for part in parts)
