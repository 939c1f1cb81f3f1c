"""Fills ``/opt/ml/model``: with the model's unpacked archive, or with copies of its S3 objects."""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from windtunnel_local.service.data.copying import Check, copy_file
from windtunnel_local.service.data.listing import list_all
from windtunnel_local.service.data.tar_stream import MAX_MEMBERS, TarStream, Unreadable
from windtunnel_local.service.ground.errors import InputError, NoSuchBucket, NoSuchKey
from windtunnel_local.service.ground.ports import ObjectStore
from windtunnel_local.service.ground.uris import parse_s3
from windtunnel_local.service.hosting.accepted import model_uri

_REFUSED: type[tarfile.TarError] = getattr(tarfile, "FilterError", tarfile.ExtractError)


def provide_model(container: Mapping[str, Any], target: Path, objects: ObjectStore, check: Check) -> None:
    """Fill ``target`` with a container's model. Blocks; ``check`` is called meanwhile, and raises to abandon.

    Raises:
        InputError: names the archive, the member and the reason.
    """
    uri = model_uri(container)
    if uri is None:
        return
    bucket, key = parse_s3(uri)
    try:
        if container.get("ModelDataSource", {}).get("S3DataSource", {}).get("CompressionType") == "None":
            for info in list_all(objects, bucket, key):
                if not info.key.endswith("/"):
                    name = info.key[len(key) :].lstrip("/") or Path(info.key).name
                    copy_file(objects.path(bucket, info.key), _inside(target, name, uri), uri, check)
        else:
            _unpack(objects.path(bucket, key), target, uri, check)
    except (NoSuchBucket, NoSuchKey) as error:
        raise InputError(f"Could not find model data at {uri}.") from error


def _inside(target: Path, name: str, uri: str) -> Path:
    if "\0" in name:
        raise InputError(
            f"The model data at {uri} are refused: no file can have the name of the key {name!r}."
        )
    path = (target / name).resolve()
    if not path.is_relative_to(target.resolve()):
        raise InputError(
            f"The model data at {uri} are refused: the key {name!r} leads out of the model's folder."
        )
    return path


def _unpack(archive: Path, target: Path, uri: str, check: Check) -> None:
    """Unpack the archive. Paths and links that lead out of ``target`` are refused, and devices; owners are dropped."""
    left = shutil.disk_usage(target).free

    def refused(reason: object) -> InputError:
        return InputError(
            f"The model archive {uri} is refused: {reason}. Build it from files inside one folder."
        )

    try:
        with archive.open("rb") as packed, (stream := TarStream(packed, refused)).members() as tar:
            for number, member in enumerate(tar):
                check()
                if number >= MAX_MEMBERS:
                    raise refused(f"it has more than {MAX_MEMBERS} members")
                left -= member.size
                if left < 0:
                    raise InputError(
                        f"The model archive {uri} is refused: with {member.name!r} it is larger, unpacked, than what"
                        " is free on the disk of WINDTUNNEL_HOME."
                    )
                stream.content(True)
                _extract(tar, member, target)
                stream.content(False)
    except _REFUSED as error:
        raise refused(error) from error
    except (tarfile.TarError, Unreadable, RecursionError, OSError, ValueError) as error:
        raise InputError(
            f"The model archive {uri} cannot be unpacked ({error}). It must be a model.tar.gz, as a training job"
            " leaves it."
        ) from error


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    """Extract a member through tarfile's "data" filter. Python before 3.10.12 and 3.11.4 (as Debian 12's) has none:
    there, all links are refused.
    """
    if hasattr(tarfile, "data_filter"):
        tar.extract(member, target, filter="data")
        return
    if not (target / member.name).resolve().is_relative_to(target.resolve()):
        raise _REFUSED(f"{member.name!r} would be outside of the folder")
    if not (member.isreg() or member.isdir()):
        raise _REFUSED(f"{member.name!r} is a link or special file, which Python 3.11.4 or newer could check")
    member.mode = 0o755 if member.isdir() else 0o600 | member.mode & 0o755
    member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
    tar.extract(member, target)
