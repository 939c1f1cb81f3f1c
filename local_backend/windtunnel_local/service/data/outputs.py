"""Stores a job's outputs in the object store: model, output data, TensorBoard event files.

Everything here can be repeated, so that an upload which was cut off is done again.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from windtunnel_local.service.data.checkpoints import checkpoint_uri
from windtunnel_local.service.data.copying import Check, go_on
from windtunnel_local.service.data.merged_folders import Entry, Tell, merged, silent
from windtunnel_local.service.data.sparse_files import add_file
from windtunnel_local.service.data.trees import make_readable, make_tree_readable
from windtunnel_local.service.data.untrusted_files import Watched, open_regular, require_room
from windtunnel_local.service.ground.errors import InputError
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.job_paths import JobPaths
from windtunnel_local.service.ground.ports import ObjectStore
from windtunnel_local.service.ground.uris import MAX_KEY_BYTES, join_s3, parse_s3
from windtunnel_local.service.request import requests

_COMPRESSED = 6
_MODEL = "model.tar.gz"


def require_place(job: Job, objects: ObjectStore) -> None:
    """Check, before the training starts, that its outputs can be stored.

    Raises:
        InputError: a bucket does not exist, or the keys would be too long.
    """
    places = {
        "OutputDataConfig.S3OutputPath": job.request["OutputDataConfig"]["S3OutputPath"],
        "CheckpointConfig.S3Uri": checkpoint_uri(job),
        "TensorBoardOutputConfig.S3OutputPath": job.request.get("TensorBoardOutputConfig", {}).get(
            "S3OutputPath"
        ),
    }
    for member, uri in places.items():
        if uri is not None and not objects.has_bucket(parse_s3(uri)[0]):
            raise InputError(
                f"ClientError: Artifact upload would fail: the bucket of {member} ({uri}) does not exist. Create it"
                " first, or name an existing one."
            )
    key = parse_s3(output_uri(job, "output", _MODEL))[1]
    if len(key.encode()) > MAX_KEY_BYTES:
        given = job.request["OutputDataConfig"]["S3OutputPath"]
        raise InputError(
            f"ClientError: Artifact upload would fail: the model's key would have {len(key.encode())} bytes; at most"
            f" {MAX_KEY_BYTES} are allowed. Shorten OutputDataConfig.S3OutputPath, which has {len(given.encode())}"
            f" bytes; the job's name and output/{_MODEL} follow it."
        )


def output_uri(job: Job, *parts: str) -> str:
    """The URI ``<S3OutputPath>/<job>/<parts>``."""
    return join_s3(job.request["OutputDataConfig"]["S3OutputPath"], job.name, *parts)


def make_outputs_readable(job: Job, folders: JobPaths) -> None:
    """Give the server read permission on outputs for which the script has removed it. Call when the script has ended.

    On SageMaker root stores the outputs; a server that runs as root needs no permission here either.
    """
    if os.geteuid() == 0:
        return
    for host in job.hosts:
        make_readable(folders.ml(host))
        output = folders.output_data(host).parent
        for root in (output, folders.model(host), folders.checkpoints(host), folders.counters(host)):
            if folders.holds(root):
                make_tree_readable(root)


def store_artifacts(
    job: Job, folders: JobPaths, objects: ObjectStore, check: Check = go_on, tell: Tell = silent
) -> str | None:
    """Store the model, the output data and the event files, if there are any; return the model's URI, or None.

    ``check`` is called often, and raises to abandon; then no object is half stored. ``tell``: see `merged`.

    Model and output data become model.tar.gz and output.tar.gz, or with CompressionType NONE the
    files below ``output/model/`` and ``output/data/``. The directories of all hosts are merged; if
    several hosts wrote the same name, the first host's file is taken.

    Raises:
        ObjectError, OSError: a file cannot be stored.
    """
    models = merged([folders.model(host) for host in job.hosts], folders, tell)
    data = merged([folders.output_data(host) for host in job.hosts], folders, tell)
    if job.request["OutputDataConfig"].get("CompressionType") == "NONE":
        model = _store_each(models, output_uri(job, "output", "model", ""), folders, objects, check)
        _store_each(data, output_uri(job, "output", "data", ""), folders, objects, check)
    else:
        model = _store_archive(job, _MODEL, models, folders, objects, check)
        _store_archive(job, "output.tar.gz", data, folders, objects, check)
    store_event_files(job, folders, objects, check, tell)
    return model


def _store_archive(
    job: Job, name: str, found: Iterator[Entry], folders: JobPaths, objects: ObjectStore, check: Check
) -> str | None:
    entries = list(found)
    if all(entry.path.is_dir() and not entry.path.is_symlink() for entry in entries):
        return None
    require_room((entry.path for entry in entries), folders, packed=True)
    folders.scratch.mkdir(parents=True, exist_ok=True)
    archive = folders.scratch / name
    uri = output_uri(job, "output", name)
    # A short rehearsal's model is of no use, and compressing BERT base would take a tenth of the rehearsal's time.
    level = 0 if requests.is_short_rehearsal(job) else _COMPRESSED
    write_archive(archive, entries, folders, check, level)
    with Watched(io.FileIO(archive), check) as file:
        objects.put(*parse_s3(uri), file)
    archive.unlink()  # after an error, it is removed with the job's folder
    return uri


def _store_each(
    found: Iterator[Entry], prefix: str, folders: JobPaths, objects: ObjectStore, check: Check
) -> str | None:
    """Store each file as an object below ``prefix``; return ``prefix``, None without files. Folders are not stored."""
    entries = list(found)
    require_room((entry.path for entry in entries), folders)
    files = [entry for entry in entries if entry.path.is_file()]
    for entry in files:
        with open_regular(entry.path, folders, check) as file:
            objects.put(*parse_s3(prefix + entry.name), file)
    return prefix if files else None


def store_event_files(
    job: Job, folders: JobPaths, objects: ObjectStore, check: Check = go_on, tell: Tell = silent
) -> None:
    """Store the TensorBoard event files below `event_files_uri`. ``tell``: see `merged`."""
    found = merged([folders.tensorboard(host) for host in job.hosts], folders, tell)
    _store_each(found, event_files_uri(job.request, job.name), folders, objects, check)


def event_files_uri(request: Mapping[str, Any], job: str) -> str:
    """The beginning of the URIs at which SageMaker stores event files; each one's name follows.

    It is below TensorBoardOutputConfig.S3OutputPath; without this, which only this backend allows, below
    OutputDataConfig's. ``request``: the job's request or description.
    """
    config = request.get("TensorBoardOutputConfig") or request["OutputDataConfig"]
    return join_s3(config["S3OutputPath"], job, "tensorboard-output", "")


def event_files(job: Job, folders: JobPaths) -> Iterator[tuple[str, BinaryIO]]:
    """The TensorBoard event files now: name and open file, each open until the next one is asked for."""
    for entry in merged([folders.tensorboard(host) for host in job.hosts], folders):
        with suppress(OSError), open_regular(entry.path, folders) as file:
            yield entry.name, file


def write_archive(
    archive: Path, entries: Sequence[Entry], folders: JobPaths, check: Check, level: int
) -> None:
    """Write a tar.gz that depends only on names, contents, holes and permissions, not on times and owners.

    Only files of the job's folder are packed, even if a process of the job still runs and swaps folders for links.
    """
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=level, fileobj=raw, mtime=0) as packed,
        tarfile.open(mode="w|", fileobj=packed, format=tarfile.PAX_FORMAT) as tar,
    ):
        for entry in entries:
            info = tar.gettarinfo(entry.path, arcname=entry.name)
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = 0
            if info.islnk():  # a hard link is stored as a file of its own
                info.type, info.linkname = tarfile.REGTYPE, ""
            if info.isreg():
                with open_regular(entry.path, folders, check) as content:
                    add_file(tar, info, content)
            else:
                tar.addfile(info)
