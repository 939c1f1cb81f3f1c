"""What a job leaves behind: model, output data, checkpoints; into the object store.

Everything here can be repeated: an upload that was cut off is done again.
"""

from __future__ import annotations

import gzip
import json
import logging
import stat
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel_local.service.data.inputs import copy_file, list_all, relative_key
from windtunnel_local.service.data.paths import JobPaths
from windtunnel_local.service.data.uris import join_s3, parse_s3
from windtunnel_local.service.errors import InputError, NoSuchBucket, NoSuchKey
from windtunnel_local.service.model import Job
from windtunnel_local.service.ports import ObjectStore

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Entry:
    """A file, directory or inner link of the merged tree."""

    name: str
    path: Path


def require_output_bucket(job: Job, objects: ObjectStore) -> None:
    """Find out before the training, not after it, that its result has no place to go.

    Raises:
        InputError: the bucket does not exist.
    """
    tensorboard = job.request.get("TensorBoardOutputConfig", {}).get("S3OutputPath")
    for uri in (job.request["OutputDataConfig"]["S3OutputPath"], _checkpoint_uri(job), tensorboard):
        if uri is not None and not objects.has_bucket(parse_s3(uri)[0]):
            raise InputError(
                f"ClientError: Artifact upload would fail: the bucket of {uri} does not exist. Create it"
                " first, or name an existing one."
            )


def output_uri(job: Job, *parts: str) -> str:
    """An address below ``<S3OutputPath>/<job>``."""
    return join_s3(job.request["OutputDataConfig"]["S3OutputPath"], job.name, *parts)


def store_artifacts(job: Job, folders: JobPaths, objects: ObjectStore) -> str | None:
    """Store model.tar.gz, output.tar.gz and event files, each if it has content; returns the model's URI.

    The directories of all hosts become one archive; where two hosts wrote the same name,
    the first host's file is taken.

    Raises:
        ObjectError, OSError: it cannot be stored.
    """
    hosts = job.hosts
    model = _store_archive(job, "model.tar.gz", [folders.model(h) for h in hosts], folders, objects)
    _store_archive(job, "output.tar.gz", [folders.output_data(h) for h in hosts], folders, objects)
    _store_event_files(job, folders, objects)
    return model


def _store_archive(
    job: Job, name: str, roots: Sequence[Path], folders: JobPaths, objects: ObjectStore
) -> str | None:
    entries = list(_merged(roots, folders))
    if all(entry.path.is_dir() and not entry.path.is_symlink() for entry in entries):
        return None
    folders.scratch.mkdir(parents=True, exist_ok=True)
    archive = folders.scratch / name
    uri = output_uri(job, "output", name)
    try:
        write_archive(archive, entries)
        objects.put_file(*parse_s3(uri), archive)
    finally:
        archive.unlink(missing_ok=True)
    return uri


def _store_event_files(job: Job, folders: JobPaths, objects: ObjectStore) -> None:
    """What lies in the folder of TensorBoard, file by file, where SageMaker puts it.

    That is TensorBoardOutputConfig.S3OutputPath; here also without one, to the job's other output.
    """
    config = job.request.get("TensorBoardOutputConfig") or job.request["OutputDataConfig"]
    for entry in _merged([folders.tensorboard(host) for host in job.hosts], folders):
        if entry.path.is_file():
            uri = join_s3(config["S3OutputPath"], job.name, "tensorboard-output", entry.name)
            objects.put_file(*parse_s3(uri), entry.path)


def write_archive(archive: Path, entries: Sequence[_Entry]) -> None:
    """A tar.gz that depends on names, contents and permissions only: no times, no owners."""
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
        tarfile.open(mode="w|", fileobj=packed, format=tarfile.PAX_FORMAT) as tar,
    ):
        for entry in entries:
            info = tar.gettarinfo(entry.path, arcname=entry.name)
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = 0
            if info.islnk():  # a second name of a file: stored as a file of its own
                info.type, info.linkname = tarfile.REGTYPE, ""
                info.size = entry.path.stat().st_size
            if info.isreg():
                with entry.path.open("rb") as content:
                    tar.addfile(info, content)
            else:
                tar.addfile(info)


def _merged(roots: Sequence[Path], folders: JobPaths) -> Iterator[_Entry]:
    """The trees of all hosts as one, sorted by name."""
    merged: dict[str, Path] = {}
    for root in roots:
        for path in _walk(root, folders):
            merged.setdefault(path.relative_to(root).as_posix(), path)
    for name in sorted(merged):
        yield _Entry(name, merged[name])


def _walk(root: Path, folders: JobPaths) -> Iterator[Path]:
    """Files, directories and links that stay inside; the rest is left out, with a line in the log."""
    if not root.is_dir():
        return
    if not folders.holds(root):
        _log.warning("%s was replaced by a link that leads out; it is not stored.", root)
        return
    top, pending = root.resolve(), [root]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                inside = path.resolve().is_relative_to(top) and not path.readlink().is_absolute()
                if inside:
                    yield path
                else:
                    _log.warning("%s is a link that leads out; it is not stored.", path)
            elif stat.S_ISDIR(mode):
                yield path
                pending.append(path)
            elif stat.S_ISREG(mode):
                yield path
            else:
                _log.warning("%s is no regular file; it is not stored.", path)


# --- checkpoints ------------------------------------------------------------


def fetch_checkpoints(job: Job, folders: JobPaths, objects: ObjectStore, check: Callable[[], None]) -> None:
    """Fill every host's checkpoint directory from CheckpointConfig.S3Uri.

    SageMaker syncs while the job runs; this backend syncs at the start and at the end, which
    a script that resumes from its checkpoints cannot tell apart.

    Raises:
        InputError: a key leaves the directory, or its file cannot be written.
    """
    uri = _checkpoint_uri(job)
    if uri is None:
        return
    bucket, prefix = _checkpoint_prefix(uri)
    known: dict[str, dict[str, list[int]]] = {}
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
        try:
            original = objects.path(bucket, info.key)
        except NoSuchKey:
            continue  # removed since it was listed
        for host in job.hosts:
            target = folders.checkpoints(host) / relative.lstrip("/")
            copy_file(original, target, f"s3://{bucket}/{info.key}")
            known.setdefault(relative, {})[host] = _fingerprint(target)
    folders.checkpoint_manifest.write_text(json.dumps(known))


def store_checkpoints(job: Job, folders: JobPaths, objects: ObjectStore) -> None:
    """Bring CheckpointConfig.S3Uri to what the hosts have now: at the end, however the job ended.

    New and changed files are stored; what was fetched at the start and is gone from all
    hosts is deleted. Objects that appeared there meanwhile are left alone.

    Raises:
        ObjectError, OSError: it cannot be stored.
    """
    uri = _checkpoint_uri(job)
    if uri is None:
        return
    bucket, prefix = _checkpoint_prefix(uri)
    manifest = folders.checkpoint_manifest
    known: dict[str, dict[str, list[int]]] = json.loads(manifest.read_text()) if manifest.is_file() else {}
    present: set[str] = set()
    changed: dict[str, Path] = {}
    for host in job.hosts:
        for entry in _merged([folders.checkpoints(host)], folders):
            if entry.path.is_file():
                present.add(entry.name)
                if known.get(entry.name, {}).get(host) != _fingerprint(entry.path):
                    changed.setdefault(entry.name, entry.path)
    for name, path in changed.items():
        objects.put_file(bucket, prefix + name, path)
    for gone in sorted(set(known) - present):
        objects.delete(bucket, prefix + gone)


def _fingerprint(path: Path) -> list[int]:
    """Changes whenever the file is written."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _checkpoint_uri(job: Job) -> str | None:
    config = job.request.get("CheckpointConfig")
    return None if config is None else str(config["S3Uri"])


def _checkpoint_prefix(uri: str) -> tuple[str, str]:
    bucket, key = parse_s3(uri)
    if not bucket:
        raise NoSuchBucket(uri)
    return bucket, f"{key.rstrip('/')}/" if key else ""
