"""Files on their way into a job's folder: copied, shared between hosts, or linked to where they are."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from windtunnel_local.service.ground.errors import InputError, NoSuchKey

Check = Callable[[], None]
"""Called between files and within long ones; raises to abandon what is under way."""

_PART_BYTES = 64 << 20
_BUFFER_BYTES = 1 << 20
_TRIES = 5
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


def take(original: Callable[[], Path], how: Callable[[Path], None]) -> bool:
    """Copy or link an object's file. If it is being replaced, the new one is taken.

    ``how`` raises ``FileNotFoundError`` for an original that is gone. Returns whether there is such an object.
    """
    for _ in range(_TRIES):
        try:
            how(original())
        except NoSuchKey:
            break
        except FileNotFoundError:
            continue
        return True
    return False


def copy_file(original: Path, target: Path, uri: str, check: Check = go_on) -> None:
    """A copy, never a link: what a script does to its input must not reach the original.

    At most one buffer of its bytes is in memory, whatever its size.

    Raises:
        InputError: it cannot be read or written; names ``uri``.
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
    # Not on macOS, and not between all file systems; the offsets are where it stopped.
    with suppress(AttributeError, OSError):
        while os.copy_file_range(source, target, _PART_BYTES):
            check()
    while part := os.read(source, _BUFFER_BYTES):
        check()
        view = memoryview(part)
        while view:
            view = view[os.write(target, view) :]


def link_file(original: Path, target: Path, uri: str, check: Check = go_on) -> None:
    """A second name of the same file; a copy where the file system cannot give one.

    Only for folders that the job cannot write to.

    Raises:
        InputError: it cannot be written; names ``uri``.
        FileNotFoundError: the original is gone.
    """
    make_folder(target.parent, uri)
    try:
        os.link(original, target)
    except FileNotFoundError:
        raise
    except OSError as error:  # another file system, too many links, somebody else's file
        if os.path.lexists(target):  # never write there: it may be another name of somebody's bytes
            raise cannot_write(uri, target, error) from error
        copy_file(original, target, uri, check)


def share(first: Path, other: Path, uri: str, check: Check = go_on) -> None:
    """Give a host another host's copy, as a second name of the file where the file system can."""
    make_folder(other.parent, uri)
    try:
        os.link(first, other)
    except OSError:
        copy_file(first, other, uri, check)


def make_folder(folder: Path, uri: str) -> None:
    """Make a directory; raises ``InputError``."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(uri, folder, error) from error


def cannot_write(uri: str, target: Path, error: OSError) -> InputError:
    """The error of an input file that cannot be written."""
    text = f"{uri} could not be written to {target}: {error.strerror or error}"
    return download_failed(f"{text}. {_RENAME[error.errno]}" if error.errno in _RENAME else text)


def download_failed(text: str) -> InputError:
    """An ``InputError`` in SageMaker's words. ``text`` ends without a full stop."""
    return InputError(f"ClientError: Data download failed: {text}.")
