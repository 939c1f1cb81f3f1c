"""Merges the folders that the scripts of all hosts have written into one tree."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel_local.service.ground.job_paths import ML, JobPaths
from windtunnel_local.service.ground.printable import printable

Tell = Callable[[str], None]
"""A callback that gets a sentence about a file which is left out."""

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True)
class Entry:
    """A file, directory or inner link of the merged tree."""

    name: str
    path: Path


def silent(_: str) -> None:
    """A `Tell` that does nothing."""


def merged(roots: Sequence[Path], folders: JobPaths, tell: Tell = silent) -> Iterator[Entry]:
    """The trees of all hosts as one, sorted by name. If several hosts wrote the same name, the first host's is taken.

    ``tell`` gets a sentence for each file that is left out.
    """
    found: dict[str, Path] = {}
    for root in roots:
        for path in _walk(root, folders, tell):
            found.setdefault(path.relative_to(root).as_posix(), path)
    for name in sorted(found):
        yield Entry(name, found[name])


def _walk(root: Path, folders: JobPaths, tell: Tell) -> Iterator[Path]:
    """The files, directories, and links that stay inside ``root``."""
    if not root.is_dir():
        return
    if not folders.holds(root):
        tell(f"{_seen(root, folders)} is not stored: it was replaced by a link that leads out of {ML}.")
        return
    top, pending = root.resolve(), [root]
    while pending:
        for path in sorted(pending.pop().iterdir()):
            mode = path.lstat().st_mode
            if not is_text(path.name):
                tell(f"{_seen(path, folders)} is not stored: its name is not UTF-8.")
            elif stat.S_ISLNK(mode):
                if _stays_inside(path, top):
                    yield path
                else:
                    leads = f"it is a link that leads out of {_seen(root, folders)}"
                    tell(f"{_seen(path, folders)} is not stored: {leads}.")
            elif stat.S_ISDIR(mode):
                yield path
                pending.append(path)
            elif stat.S_ISREG(mode):
                yield path
            else:
                kind = _KINDS.get(stat.S_IFMT(mode), "special")
                tell(f"{_seen(path, folders)} is not stored: it is no regular file ({kind}).")


def _seen(path: Path, folders: JobPaths) -> str:
    """A path as the script sees it."""
    _hosts, _host, _ml, *rest = path.relative_to(folders.root).parts
    return printable("/".join((ML, *rest)))


def _stays_inside(link: Path, top: Path) -> bool:
    """Whether a link is relative, and its target is below ``top``: a file, a folder, or missing."""
    target = Path(os.path.realpath(link))  # unlike `resolve`, which raises for a loop before Python 3.13
    try:
        kind = target.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):  # the target does not exist
        kind = None
    except OSError:  # a loop of links
        return False
    usual = kind is None or stat.S_ISREG(kind) or stat.S_ISDIR(kind)
    return usual and target.is_relative_to(top) and not link.readlink().is_absolute()


def is_text(name: str) -> bool:
    """Whether a name can be a key: it is valid UTF-8. (Python decodes invalid bytes as lone surrogates.)"""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
