"""Copies a job's event files into a folder for TensorBoard, as the store's files have other names than the objects."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from windtunnel_local.service.data.outputs import event_files_uri
from windtunnel_local.service.ground.errors import JobNotFound, ObjectError
from windtunnel_local.service.ground.job import TERMINAL
from windtunnel_local.service.ground.ports import ObjectStore
from windtunnel_local.service.ground.uris import parse_s3
from windtunnel_local.service.service import Service

MOST_BYTES = 1 << 30
MOST_FILES = 1_000
_MARK = "tfevents"
"""The text by which TensorBoard knows an event file's name. Other files are not copied: plugins could open them."""
_BLOCK = 1 << 20


def stored(objects: ObjectStore, description: Mapping[str, Any], most: int = MOST_FILES) -> dict[str, str]:
    """The job's event files in S3: key by name, without the prefix."""
    prefix = _place(description)[1]
    try:
        found = objects.list(*_place(description), limit=most)
    except ObjectError:
        return {}
    names = {one.key[len(prefix) :]: one.key for one in found}
    return {name: key for name, key in names.items() if _is_usable(name)}


def fill(folder: Path, backend: Service, description: Mapping[str, Any]) -> tuple[bool, bool]:
    """Copy into the folder what the job has written since the last call. Existing copies only grow.

    Returns:
        Whether the job has ended, so that nothing more will come; and whether files were left out for lack of space.
    """
    name, created = description["TrainingJobName"], description["CreationTime"]
    try:
        now = backend.jobs.describe(name)
    except JobNotFound:
        return True, False
    if now["CreationTime"] != created:  # deleted, and another job has its name
        return True, False
    taken = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    room = min(MOST_BYTES - taken, shutil.disk_usage(folder).free // 2)
    full = False
    with suppress(OSError):  # the job's folder is changing: the next call copies the rest
        for file_name, file in islice(_files(backend, now), MOST_FILES):
            # Left out: a name that the file system does not allow, or a file where another needs a folder.
            with suppress(OSError, ValueError):
                room -= _grow(folder / file_name, file, room)
                full = full or (room <= 0 and bool(file.read(1)))
    return now["TrainingJobStatus"] in TERMINAL, full


def _files(backend: Service, job: Mapping[str, Any]) -> Iterator[tuple[str, BinaryIO]]:
    bucket = _place(job)[0]
    for name, key in stored(backend.objects, job).items():
        with suppress(ObjectError, OSError), backend.objects.path(bucket, key).open("rb") as file:
            yield name, file
    yield from (found for found in backend.jobs.event_files(job["TrainingJobName"]) if _is_usable(found[0]))


def _grow(target: Path, file: BinaryIO, room: int) -> int:
    """Append the missing bytes to the copy, at most ``room``; returns how many. TensorBoard reads growing files."""
    target.parent.mkdir(parents=True, exist_ok=True)
    copied = 0
    with target.open("ab") as copy:
        file.seek(copy.tell())
        while copied < room and (block := file.read(min(_BLOCK, room - copied))):
            copy.write(block)
            copied += len(block)
    return copied


def _is_usable(name: str) -> bool:
    pieces = name.split("/")
    return _MARK in pieces[-1] and not {"", ".", ".."} & set(pieces)


def _place(description: Mapping[str, Any]) -> tuple[str, str]:
    """The bucket and prefix of the job's event files in S3."""
    return parse_s3(event_files_uri(description, description["TrainingJobName"]))
