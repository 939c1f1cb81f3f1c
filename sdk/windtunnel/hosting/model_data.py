"""Prepare a model's archive: fetch it, pack it again with its serving code, and store it in S3."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from windtunnel.errors import InputError, SourceError
from windtunnel.local_paths import absolute, reading
from windtunnel.request.arguments import AnyPath
from windtunnel.request.inputs import local_path, split_s3
from windtunnel.request.model_archive import repack
from windtunnel.request.source_archive import SourceTree, check_entry_point_name, packed, source_tree
from windtunnel.session.session import Session

ARCHIVE = "model.tar.gz"


@dataclass(frozen=True)
class ServingCode:
    """The serving code: a tree to pack, or a tarball in S3. ``script``: the entry point, at the root of the code."""

    script: str
    tree: SourceTree | None
    tarball: str | None
    replaces: bool
    """Whether it replaces all code in the model's archive. A script without ``source_dir`` is only added."""


def serving_code(
    entry_point: AnyPath | None, source_dir: AnyPath | None, dependencies: Sequence[AnyPath]
) -> ServingCode | None:
    """The code that the arguments name, checked; None: they name none, so archive or image must have it.

    Raises:
        SourceError: a file is missing, or the script is not at the root of ``source_dir``.
    """
    if not entry_point:
        if source_dir or dependencies:
            raise SourceError("entry_point is missing. Name the script with model_fn, e.g. 'inference.py'.")
        return None
    directory = None if source_dir is None else os.fspath(source_dir)
    if directory is not None and directory.lower().startswith("s3://"):
        if dependencies:
            raise SourceError("dependencies= cannot be added to a tarball in S3. Put them into it.")
        check_entry_point_name(os.fspath(entry_point))
        code = ServingCode(os.fspath(entry_point), None, f"s3{directory[2:]}", True)
    else:
        tree = source_tree(entry_point, directory, dependencies)
        code = ServingCode(tree.script, tree, None, directory is not None)
    if "/" in code.script or not code.script.endswith(".py"):
        raise SourceError(
            f"entry_point={os.fspath(entry_point)!r}: SageMaker's serving images import a .py file at the root of "
            "source_dir. Move it there."
        )
    return code


def store(
    session: Session, model_data: str, code: ServingCode | None, bucket: str, key: str, kms_key: str | None
) -> None:
    """Store the archive for the container: packed again with ``code``, if there is any. Blocks.

    Does nothing if ``model_data`` is in S3 already and there is no code to add.

    Raises:
        SourceError: an archive cannot be read, or has a member that would be unpacked outside its folder.
        InputError: there is no such archive.
        ServiceCallFailed: S3 refused.
    """
    if code is None and model_data.startswith("s3://"):
        return
    session.ensure_buckets(frozenset({bucket}))
    with _opened(session, model_data) as model:
        if code is None:
            session.service.put_file(bucket, key, model, kms_key, encrypt=True)
        else:
            with _packed(session, code) as source, tempfile.TemporaryFile() as whole:
                repack(model, source, whole, replace_code=code.replaces)
                whole.seek(0)
                session.service.put_file(bucket, key, whole, kms_key, encrypt=True)


@contextmanager
def _packed(session: Session, code: ServingCode) -> Iterator[IO[bytes]]:
    if code.tree is not None:
        with packed(code.tree) as file:
            yield file
    else:
        with _opened(session, str(code.tarball)) as file:
            yield file


@contextmanager
def _opened(session: Session, location: str) -> Iterator[IO[bytes]]:
    """Open an archive of this machine, or one in S3, which is fetched to disk first. The file is at its start."""
    if location.startswith("s3://"):
        bucket, key = split_s3(location)
        with tempfile.TemporaryFile() as file:
            if not session.service.get_object(bucket, key, file):
                raise InputError(f"{location} does not exist. job.model_data names a job's model.")
            file.seek(0)
            yield file
        return
    path = local_path(location) or Path(location)
    found = absolute(path, InputError)
    if not found.is_file():
        raise InputError(
            f"{location!r}: there is no file {found}. Give an s3:// URI, or the path of a .tar.gz."
        )
    with reading(found, InputError):
        opened = found.open("rb")
    with opened:
        yield opened
