"""CheckpointConfig: fetches checkpoints at the start of every attempt, and stores them while the job trains.

As on SageMaker, objects that appear in S3 after the start are not fetched, and files that are
deleted in the container are deleted in S3. A manifest in the job's folder lists the files that were
fetched or stored, so that another server can go on; a part that was cut off can be repeated.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from windtunnel_local.service.data.changing_file import Changed, fingerprint, open_whole
from windtunnel_local.service.data.copying import copy_file
from windtunnel_local.service.data.listing import list_all, object_item, relative_key
from windtunnel_local.service.data.merged_folders import Tell, merged, silent
from windtunnel_local.service.data.untrusted_files import require_room
from windtunnel_local.service.ground.errors import InputError
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.job_paths import JobPaths
from windtunnel_local.service.ground.ports import ObjectStore
from windtunnel_local.service.ground.uris import parse_s3

Fingerprints = dict[str, dict[str, list[int]]]
"""The fingerprints of files, by name of the file and host."""

REST_S = 0.1
"""A file that replaced another one counts as complete when it was not written for so many seconds."""

TORN_S = 1.0
"""A file that was written in the last so many seconds before its host was killed may be incomplete."""


def checkpoint_uri(job: Job) -> str | None:
    """CheckpointConfig.S3Uri, if there is one."""
    config = job.request.get("CheckpointConfig")
    return None if config is None else str(config["S3Uri"])


def fetch_checkpoints(job: Job, folders: JobPaths, objects: ObjectStore, check: Callable[[], None]) -> None:
    """Copy all objects below CheckpointConfig.S3Uri into every host's checkpoint directory.

    Raises:
        InputError: a key would lead out of the directory, or a file cannot be written.
    """
    uri = checkpoint_uri(job)
    if uri is None:
        return
    bucket, prefix = _place(uri)
    known: Fingerprints = {}
    for info in list_all(objects, bucket, prefix):
        check()
        relative = relative_key(info.key, prefix)
        if ".." in relative.split("/") or "\0" in relative:
            raise InputError(
                f"ClientError: Checkpoint download failed: the key {info.key!r} of {uri} would leave the"
                " checkpoint directory. Rename the object."
            )
        if not relative or relative.endswith("/"):
            continue
        item = object_item(objects, bucket, info.key, relative)
        for host in job.hosts:
            target = folders.checkpoints(host) / relative.lstrip("/")
            if item.take(copy_file, target, check):  # another job may have removed it since the listing
                known.setdefault(relative, {})[host] = fingerprint(target)
    _write(folders.checkpoint_manifest, known)


def store_checkpoints(
    job: Job,
    folders: JobPaths,
    objects: ObjectStore,
    killed: Mapping[str, datetime] | None = None,
    tell: Tell = silent,
) -> None:
    """Bring CheckpointConfig.S3Uri up to date with the hosts' files. Call when no container writes them any more.

    New and changed files are stored; files that were fetched or stored before and are gone from
    all hosts are deleted in S3. Other objects there are left alone. Repeatable.

    Args:
        job: the job.
        folders: the job's folders.
        objects: the object store.
        killed: by host that was killed, when. Files that it wrote in its last `TORN_S` seconds are left
            out, and their objects in S3 stay.
        tell: see `merged`.

    Raises:
        ObjectError, OSError: a file cannot be stored.
    """
    if checkpoint_uri(job) is not None:
        Checkpoints(job, folders, objects).store_all(killed or {}, tell)


class Checkpoints:
    """Stores the checkpoints of a job's hosts in S3. Not thread-safe."""

    def __init__(self, job: Job, folders: JobPaths, objects: ObjectStore) -> None:
        """``job`` must have a CheckpointConfig. Reads nothing yet."""
        self._job = job
        self._folders = folders
        self._objects = objects
        self._place = _place(checkpoint_uri(job) or "")
        self._before: Fingerprints = {}

    def store_settled(self, abandon: Callable[[], bool]) -> int:
        """Store the files that are complete, and delete in S3 those that are missing now and were in the last call.

        For use while the script may be writing. A file counts as complete if it has not changed since the last
        call, or if it replaced another file and was not written for `REST_S`: scripts replace a checkpoint in
        one step by a rename. A file that changes while it is read is left for the next call.

        Args:
            abandon: called between blocks; if it is true, the call ends, and no file is half stored.

        Returns:
            How many files were stored.

        Raises:
            ObjectError, OSError: a file cannot be stored.
        """
        now = self._look(silent)
        before, self._before = self._before, now
        known = _read(self._folders.checkpoint_manifest)
        if known is None:
            return 0
        settled = {name for name in now if _settled(before.get(name, {}), now[name])}
        gone = {name for name in known if name not in now and name not in before}
        return self._bring(known, {name: now[name] for name in settled}, gone, abandon)

    def store_all(self, killed: Mapping[str, datetime], tell: Tell = silent) -> None:
        """See `store_checkpoints`."""
        now = self._look(tell)
        known = _read(self._folders.checkpoint_manifest)
        # Without a manifest the fetch was not finished: the script has not deleted the files that are missing.
        if known is None:
            return
        whole = {
            name: hosts
            for name, hosts in now.items()
            if not any(_torn(stamp, killed.get(host)) for host, stamp in hosts.items())
        }
        self._bring(known, whole, set(known) - set(now), lambda: False)

    def _bring(
        self, known: Fingerprints, present: Fingerprints, gone: set[str], abandon: Callable[[], bool]
    ) -> int:
        bucket, prefix = self._place
        stored, changed = 0, False
        try:
            for name, hosts in sorted(present.items()):
                noted = known.get(name, {})
                source = next((host for host in hosts if noted.get(host) != hosts[host]), None)
                if source is None:
                    continue
                if abandon():
                    return stored
                path = self._folders.checkpoints(source) / name
                require_room([path], self._folders)
                try:
                    with open_whole(path, self._folders, hosts[source], abandon) as file:
                        self._objects.put(bucket, prefix + name, file)
                except (Changed, FileNotFoundError):
                    continue
                known[name] = hosts
                changed = True
                stored += 1
            for name in sorted(gone):
                self._objects.delete(bucket, prefix + name)
                del known[name]
                changed = True
        finally:
            if changed:
                _write(self._folders.checkpoint_manifest, known)
        return stored

    def _look(self, tell: Tell) -> Fingerprints:
        """The fingerprints of all hosts' files, without files that disappear meanwhile."""
        found: Fingerprints = {}
        for host in self._job.hosts:
            try:
                for entry in merged([self._folders.checkpoints(host)], self._folders, tell):
                    if entry.path.is_file():
                        found.setdefault(entry.name, {})[host] = fingerprint(entry.path)
            except FileNotFoundError:  # the script is deleting files right now
                return self._before | found
        return found


def _settled(before: dict[str, list[int]], now: dict[str, list[int]]) -> bool:
    return all(before.get(host) == stamp or _replaced(before.get(host), stamp) for host, stamp in now.items())


def _replaced(before: list[int] | None, now: list[int]) -> bool:
    # The real clock and not the service's, because the files' times are the real clock's.
    return before is not None and before[2] != now[2] and time.time() - now[1] / 1e9 >= REST_S


def _torn(stamp: list[int], killed: datetime | None) -> bool:
    return killed is not None and abs(killed.timestamp() - stamp[1] / 1e9) < TORN_S


def _read(manifest: Path) -> Fingerprints | None:
    known: Fingerprints | None = json.loads(manifest.read_text()) if manifest.is_file() else None
    return known


def _write(manifest: Path, known: Fingerprints) -> None:
    draft = manifest.with_name(f"{manifest.name}.tmp")
    draft.write_text(json.dumps(known))
    draft.replace(manifest)


def _place(uri: str) -> tuple[str, str]:
    bucket, key = parse_s3(uri)
    return bucket, f"{key.rstrip('/')}/" if key else ""
