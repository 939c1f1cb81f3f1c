"""Brings files into a job's folder: as copies, or as hard links between hosts or to the originals."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from windtunnel_local.service.ground.errors import InputError

Check = Callable[[], None]
"""A callback between files and between the parts of long ones; it raises to abandon the work."""

_PART_BYTES = 64 << 20
_BUFFER_BYTES = 1 << 20
_TWICE = (
    "Another object has its place: of two keys that differ in slashes alone, or of which one goes on behind a slash"
    " where the other ends, only one can be a file. Rename one of them"
)
_RENAME = {
    errno.EEXIST: _TWICE,
    errno.EISDIR: _TWICE,
    errno.ENOTDIR: _TWICE,
    errno.ENAMETOOLONG: "A name between two slashes has at most 255 bytes here. Rename the object",
}


def go_on() -> None:
    """A `Check` that never abandons."""


def copy_file(original: Path, target: Path, uri: str, check: Check = go_on) -> None:
    """Copy a file. Never links it, so that a script which changes its input does not change the original.

    At most one buffer of the file is in memory, whatever its size.

    Raises:
        InputError: the file cannot be read or written; names ``uri``.
        FileNotFoundError: the original is gone.
    """
    make_folder(target.parent, uri)
    try:
        source = original.open("rb")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise download_failed(f"{uri} cannot be read: {error.strerror}") from error
    try:
        with source, target.open("wb") as copy:
            _copy_bytes(source.fileno(), copy.fileno(), check)
    except OSError as error:
        raise cannot_write(uri, target, error) from error


def _copy_bytes(source: int, target: int, check: Check) -> None:
    # Fails on macOS and between some file systems; then the loop below goes on, from where this has stopped.
    with suppress(AttributeError, OSError):
        while os.copy_file_range(source, target, _PART_BYTES):
            check()
    while part := os.read(source, _BUFFER_BYTES):
        check()
        view = memoryview(part)
        while view:
            view = view[os.write(target, view) :]


def link_file(original: Path, target: Path, uri: str, check: Check = go_on) -> None:
    """Make a hard link to a file; copy it if the file system cannot link it.

    Only for folders that the job cannot write to.

    Raises:
        InputError: the link or copy cannot be written; names ``uri``.
        FileNotFoundError: the original is gone.
    """
    make_folder(target.parent, uri)
    try:
        os.link(original, target)
    except FileNotFoundError:
        raise
    except OSError as error:  # another file system, too many links, another user's file
        if os.path.lexists(target):  # never write to it: it may be a hard link to another original
            raise cannot_write(uri, target, error) from error
        copy_file(original, target, uri, check)


def share(first: Path, other: Path, uri: str, check: Check = go_on) -> None:
    """Give a host another host's copy of a file: as a hard link, or as a copy if the file system cannot link."""
    make_folder(other.parent, uri)
    try:
        os.link(first, other)
    except OSError:
        copy_file(first, other, uri, check)


def make_folder(folder: Path, uri: str) -> None:
    """Create a folder and those above it; raises ``InputError``."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(uri, folder, error) from error


def cannot_write(uri: str, target: Path, error: OSError) -> InputError:
    """The error for an input file that cannot be written to ``target``."""
    text = f"{uri} could not be written to {target}: {error.strerror or error}"
    return download_failed(f"{text}. {_RENAME[error.errno]}" if error.errno in _RENAME else text)


def download_failed(text: str) -> InputError:
    """An ``InputError`` in SageMaker's words; ``text`` has no full stop at its end."""
    return InputError(f"ClientError: Data download failed: {text}.")
