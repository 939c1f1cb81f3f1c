"""What scripts left in the folders of all hosts, as one tree."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel_local.service.ground.job_paths import JobPaths

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Entry:
    """A file, directory or inner link of the merged tree."""

    name: str
    path: Path


def merged(roots: Sequence[Path], folders: JobPaths, quiet: bool = False) -> Iterator[Entry]:
    """The trees of all hosts as one, sorted by name; where two wrote the same name, the first is taken.

    What is left out has a line in the log, unless ``quiet``.
    """
    found: dict[str, Path] = {}
    for root in roots:
        for path in _walk(root, folders, logging.DEBUG if quiet else logging.WARNING):
            found.setdefault(path.relative_to(root).as_posix(), path)
    for name in sorted(found):
        yield Entry(name, found[name])


def _walk(root: Path, folders: JobPaths, level: int) -> Iterator[Path]:
    """Files, directories and links that stay inside."""
    if not root.is_dir():
        return
    if not folders.holds(root):
        _log.log(level, "%s was replaced by a link that leads out; it is not stored.", root)
        return
    top, pending = root.resolve(), [root]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            mode = path.lstat().st_mode
            if not _is_text(path.name):
                _log.log(level, "%r has a name that is no text; it is not stored.", path)
            elif stat.S_ISLNK(mode):
                if _stays_inside(path, top):
                    yield path
                else:
                    _log.log(level, "%s is a link that leads out; it is not stored.", path)
            elif stat.S_ISDIR(mode):
                yield path
                pending.append(path)
            elif stat.S_ISREG(mode):
                yield path
            else:
                _log.log(level, "%s is no regular file; it is not stored.", path)


def _stays_inside(link: Path, top: Path) -> bool:
    """Whether a link leads to a file or a folder below ``top``, wherever that is."""
    try:
        target = link.resolve()
        kind = target.stat().st_mode if target.exists() else None
    except (OSError, RuntimeError):  # in a circle
        return False
    usual = kind is None or stat.S_ISREG(kind) or stat.S_ISDIR(kind)
    return usual and target.is_relative_to(top) and not link.readlink().is_absolute()


def _is_text(name: str) -> bool:
    """Whether a name can be an object's; the rest comes as lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
