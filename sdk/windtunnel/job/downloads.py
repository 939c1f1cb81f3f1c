"""Fetching what a job stored into a directory: nothing lands outside it, nothing is overwritten unasked."""

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
    """Where each object below the prefix goes in the folder, by key. What S3's console makes for a folder, an empty
    object whose key ends with a slash, is no file.

    Raises:
        JobNotFinished: one would land outside it.
    """
    keys = (key for key in service.list_objects(bucket, prefix) if not key.endswith("/"))
    found = {key: folder / key.removeprefix(prefix) for key in keys}
    for key, target in found.items():
        if "\0" in key or not target.resolve().is_relative_to(folder.resolve()):
            raise JobNotFinished(f"s3://{bucket}/{key} would land outside {folder}: not downloaded.")
    return found


def refuse_what_exists(*targets: Path) -> None:
    """Nothing of a user's is replaced.

    Raises:
        ConfigurationError: there is one already.
    """
    for target in targets:
        if target.exists():
            raise ConfigurationError(
                f"{target} exists already, so nothing was downloaded. Name another directory, remove it, "
                "or overwrite it (download(overwrite=True), windtunnel download --overwrite)."
            )


def fetch(service: TrainingService, bucket: str, targets: Mapping[str, Path]) -> None:
    """Download the objects, by key, each into its file. A download that does not succeed leaves no file.

    Raises:
        JobNotFinished: there is no such object (any more).
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
    """The JSON object in an object of S3; None when there is none.

    Raises:
        JobNotFinished: something else is there.
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
        JobNotFinished: it is damaged, has such a member, or there is no room for it; the archive stays.
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
    """By tarfile's own filter. Python before 3.10.12 and 3.11.4, as Debian 12's, has none."""
    if hasattr(tarfile, "data_filter"):
        tar.extractall(folder, filter="data")
        return
    root = folder.resolve()
    for member in tar.getmembers():
        if not (root / member.name).resolve().is_relative_to(root):
            raise tarfile.ExtractError(f"its member {member.name!r} would be outside of the folder")
        if not (member.isreg() or member.isdir()):
            raise tarfile.ExtractError(f"its member {member.name!r} is a link or special file")
        # As the filter does: no rights for others to write, no setuid, and files of whoever unpacks them.
        member.mode = 0o755 if member.isdir() else 0o600 | member.mode & 0o755
        member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
    tar.extractall(folder)  # noqa: S202 - every member was checked
