"""Download a job's stored files into a directory, never outside it, and overwrite only if asked to."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from windtunnel.errors import ConfigurationError, JobNotFinished
from windtunnel.session.training_service import TrainingService


def places(service: TrainingService, bucket: str, prefix: str, folder: Path) -> dict[str, Path]:
    """The path in ``folder`` for each object below the prefix, by key. Keys that end with a slash, with which S3's
    console marks folders, are left out.

    Raises:
        JobNotFinished: an object would land outside the folder.
    """
    keys = (key for key in service.list_objects(bucket, prefix) if not key.endswith("/"))
    found = {key: folder / key.removeprefix(prefix) for key in keys}
    for key, target in found.items():
        if "\0" in key or not target.resolve().is_relative_to(folder.resolve()):
            raise JobNotFinished(f"s3://{bucket}/{key} would land outside {folder}: not downloaded.")
    return found


def refuse_what_exists(*targets: Path) -> None:
    """Protect the user's files from being replaced.

    Raises:
        ConfigurationError: one of the targets exists.
    """
    for target in targets:
        if target.exists():
            raise ConfigurationError(
                f"{target} exists already, so nothing was downloaded. Name another directory, remove it, "
                "or overwrite it (download(overwrite=True), windtunnel download --overwrite)."
            )


def fetch(service: TrainingService, bucket: str, targets: Mapping[str, Path]) -> None:
    """Download each object (its key) into its file (its value). A failed download leaves no file.

    Raises:
        JobNotFinished: an object does not exist (any more).
        ConfigurationError: a file cannot be written.
    """
    for key, target in targets.items():
        pending = target.with_name(f".{target.name}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with pending.open("wb") as out:
                if not service.get_object(bucket, key, out):
                    raise JobNotFinished(f"s3://{bucket}/{key} does not exist (any more). Run the job again.")
            pending.replace(target)
        except OSError as error:
            raise ConfigurationError(
                f"{target} cannot be written ({error}). Name another directory, or make room."
            ) from error
        finally:
            with suppress(OSError):
                pending.unlink()


def document(service: TrainingService, bucket: str, key: str) -> dict[str, Any] | None:
    """Read a JSON object from S3; None if the key does not exist.

    Raises:
        JobNotFinished: the content is no JSON object.
    """
    out = io.BytesIO()
    if not service.get_object(bucket, key, out):
        return None
    try:
        found = json.loads(out.getvalue())
        if not isinstance(found, dict):
            raise ValueError(f"it is a {type(found).__name__}")
    except (ValueError, RecursionError) as error:
        raise JobNotFinished(f"s3://{bucket}/{key} is no JSON object: {error}. Run the job again.") from error
    return found


def unpack(archive: Path, folder: Path) -> None:
    """Unpack into the folder and remove the archive; members that would leave the folder are refused.

    Raises:
        JobNotFinished: the archive is damaged or has such a member, or the disk is full; the archive stays.
    """
    try:
        with tarfile.open(archive) as tar:
            _extract(tar, folder)
    except (tarfile.TarError, EOFError, zlib.error, OSError, RecursionError, ValueError) as error:
        raise JobNotFinished(
            f"{archive} is not unpacked, and stays as it is: {error}. {folder} may hold a part of it."
        ) from error
    archive.unlink()


def _extract(tar: tarfile.TarFile, folder: Path) -> None:
    """Extract with tarfile's filter "data", or its rules: Python before 3.10.12 and 3.11.4 (Debian 12) lacks it."""
    if hasattr(tarfile, "data_filter"):
        tar.extractall(folder, filter="data")
        return
    root = folder.resolve()
    for member in tar.getmembers():
        if not (root / member.name).resolve().is_relative_to(root):
            raise tarfile.ExtractError(f"its member {member.name!r} would be outside of the folder")
        if not (member.isreg() or member.isdir()):
            raise tarfile.ExtractError(f"its member {member.name!r} is a link or special file")
        # As the filter does: not writable for others, no setuid, owned by the user who unpacks.
        member.mode = 0o755 if member.isdir() else 0o600 | member.mode & 0o755
        member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
    tar.extractall(folder)  # noqa: S202 - every member was checked
