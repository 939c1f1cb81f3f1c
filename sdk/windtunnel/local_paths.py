"""Paths that a user gives: make them absolute, and report in one sentence why one cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from windtunnel.errors import ConfigurationError


def absolute(given: str | os.PathLike[str], error: type[ConfigurationError] = ConfigurationError) -> Path:
    """The path with ``~`` expanded, below the current directory if it is relative; it need not exist.

    Raises:
        ConfigurationError: or the class ``error``: there is no such user, no home, or no current directory.
    """
    try:
        return Path(given).expanduser().absolute()
    except RuntimeError as cause:  # from pathlib: no such user, or no home
        raise error(
            f"{os.fspath(given)!r}: '~' is the home of nobody here. Give an absolute path, or set HOME."
        ) from cause
    except OSError as cause:
        raise error(
            f"{os.fspath(given)!r}: the current directory does not exist any more. Give an absolute path."
        ) from cause


@contextmanager
def reading(path: Path, error: type[ConfigurationError]) -> Iterator[None]:
    """Turn an OSError on ``path``, or on a file below it, into ``error``."""
    try:
        yield
    except OSError as cause:
        place = cause.filename if isinstance(cause.filename, str) else path
        reason = cause.strerror or str(cause)
        raise error(f"{place} cannot be read: {reason}. Repair its permissions, or leave it out.") from cause


def is_file(path: Path) -> bool:
    """Whether the path is a file. False too if its folder may not be read or its name is impossible;
    before Python 3.14 `Path.is_file` raises for these.
    """
    with suppress(OSError):
        return path.is_file()
    return False


def is_folder(path: Path) -> bool:
    """Whether the path is a folder; False too where `is_file` says so."""
    with suppress(OSError):
        return path.is_dir()
    return False
