"""Pack the user's code as sourcedir.tar.gz, reproducibly.

The same tree gives the same bytes on any machine and at any time: entries are sorted, times and owners are
zero, modes are 0644 or 0755, the gzip header carries neither name nor time. So two uploads show whether the code
of two jobs is the same.

Layout as in the SageMaker SDK: the contents of ``source_dir`` (or the entry point alone) at the root, and
each dependency under its own name next to them.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
import tarfile
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from windtunnel.errors import SourceError, SourceWarning, did_you_mean
from windtunnel.local_paths import absolute, is_file, reading

SKIPPED_NAMES = frozenset({".git", "__pycache__", ".ipynb_checkpoints"})
SKIPPED_SUFFIXES = (".pyc",)
LARGE_BYTES = 200 * 10**6
TARBALL_NAME = "sourcedir.tar.gz"

_SPOOL_BYTES = 8 * 2**20
# The training toolkit joins the command line with spaces and hands it to a shell without quoting.
_SAFE_ENTRY_POINT = re.compile(r"[A-Za-z0-9._+/-]+")


@dataclass(frozen=True)
class SourceTree:
    """The files to pack, as absolute paths. Made and checked by `source_tree`."""

    script: str
    """The entry point inside the tarball, e.g. ``train.py``: the hyperparameter sagemaker_program."""
    source_dir: Path | None
    """The folder whose contents go to the root of the tarball; None: only ``entry_point`` goes there."""
    entry_point: Path
    dependencies: tuple[Path, ...] = ()

    def roots(self) -> Iterator[tuple[str, Path]]:
        """Name and path of each entry at the tarball's root, sorted by name."""
        found: dict[str, Path] = {}
        listed = [self.entry_point] if self.source_dir is None else sorted(self.source_dir.iterdir())
        for path in [*listed, *self.dependencies]:
            if _skipped(path) and path not in self.dependencies:
                continue
            if path.name in found:
                raise SourceError(
                    f"{path} and {found[path.name]} would both be /opt/ml/code/{path.name} in the container. "
                    "Rename one, or leave it out of dependencies=."
                )
            found[path.name] = path
        yield from sorted(found.items())


def source_tree(
    entry_point: str | os.PathLike[str] | None,
    source_dir: str | os.PathLike[str] | None = None,
    dependencies: Sequence[str | os.PathLike[str]] = (),
) -> SourceTree:
    """Check the entry point, the directory and the dependencies of a job whose code is local.

    Raises:
        SourceError: says what is missing, where, and what there is instead.
    """
    if not entry_point:
        raise SourceError("entry_point is missing. Give the script that trains, e.g. entry_point='train.py'.")
    given = os.fspath(entry_point)
    check_entry_point_name(given, alone=source_dir is None)
    root = None if source_dir is None else absolute(source_dir, SourceError)
    with reading(root or Path(given), SourceError):
        return _source_tree(given, source_dir, root, dependencies)


def _source_tree(
    given: str,
    source_dir: str | os.PathLike[str] | None,
    root: Path | None,
    dependencies: Sequence[str | os.PathLike[str]],
) -> SourceTree:
    if root is not None and not root.is_dir():
        raise SourceError(f"source_dir={str(source_dir)!r}: {root} is not a directory.")
    script = Path(given) if root is not None else absolute(given, SourceError)
    if root is not None and script.is_absolute():
        raise SourceError(
            f"entry_point={given!r} is absolute although source_dir={str(source_dir)!r} is given. "
            "Give it relative to source_dir."
        )
    path = script if root is None else root / script
    if not path.is_file():
        raise _missing_entry_point(given, path, root)
    if root is not None and not path.resolve().is_relative_to(root.resolve()):
        raise SourceError(f"entry_point={given!r} leaves source_dir {root}. Give a script inside it.")
    inside = [path] if root is None else [root / part for part in (script, *script.parents[:-1])]
    if skipped := next(filter(_skipped, inside), None):
        raise SourceError(
            f"entry_point={given!r}: {skipped} is not packed, like all caches and virtual environments. "
            "Move the script."
        )
    packed = tuple(absolute(dependency, SourceError) for dependency in dependencies)
    for dependency in packed:
        if not dependency.exists():
            raise SourceError(f"dependencies: {dependency} does not exist.")
    name = path.name if root is None else str(PurePosixPath(os.path.normpath(script)))
    return SourceTree(name, root, path, packed)


def check_entry_point_name(entry_point: str, *, alone: bool = False) -> None:
    """Refuse names that the training toolkit's unquoted shell command would break.

    ``alone``: the script is packed without the folders of its path, so only its file name counts.
    """
    if entry_point.startswith("s3://"):
        raise SourceError(
            f"entry_point={entry_point!r}: it is a path; only source_dir may be an s3:// tarball."
        )
    name = Path(entry_point).name if alone or Path(entry_point).is_absolute() else entry_point
    if not _SAFE_ENTRY_POINT.fullmatch(name):
        raise SourceError(
            f"entry_point={entry_point!r}: the training toolkit puts it into a shell command unquoted. "
            "Only A-Z a-z 0-9 . _ + / - are safe: rename the script."
        )


def _missing_entry_point(given: str, path: Path, root: Path | None) -> SourceError:
    folder = root or path.parent
    scripts: list[str] = []
    if folder.is_dir():
        scripts = sorted(
            str(found.relative_to(folder)) for found in folder.iterdir() if found.suffix in (".py", ".sh")
        )
    hint = did_you_mean(Path(given).name, scripts)
    listing = f" Scripts there: {', '.join(scripts[:8])}." if scripts else f" {folder} has no scripts."
    return SourceError(f"entry_point={given!r}: there is no file {path}.{hint}{listing}")


@contextmanager
def packed(tree: SourceTree) -> Iterator[IO[bytes]]:
    """Pack the tree; gives the tarball as a file opened at its start, in memory up to 8 MiB, on disk above."""
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES) as file:
        write_tarball(tree, file)
        file.seek(0)
        yield file


def write_tarball(tree: SourceTree, out: IO[bytes]) -> None:
    """Stream the tarball of ``tree`` to ``out``.

    Raises:
        SourceError: a file cannot be read; it is a socket, device or pipe; a symbolic link leaves the tree and
            the git repository around it, or closes a loop.

    Warns:
        SourceWarning: as soon as more than `LARGE_BYTES` are found, because gzip may take long for the rest.
    """
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=6, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8") as tar,
    ):
        with reading(tree.source_dir or tree.entry_point, SourceError):
            roots = list(tree.roots())
        packing = _Packing(tar)
        for name, path in roots:
            inside_source = tree.source_dir is not None and path.parent == tree.source_dir
            boundary = tree.source_dir if inside_source and tree.source_dir is not None else path
            _add(packing, name, path, _repository(boundary.resolve()), ())


class _Packing:
    """A tarball that is being written, with the bytes so far of each entry at its root."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._bytes: Counter[str] = Counter()

    def add(self, entry: tarfile.TarInfo, content: IO[bytes] | None = None) -> None:
        before = self._bytes.total()
        self._bytes[entry.name.partition("/")[0]] += entry.size
        if before <= LARGE_BYTES < before + entry.size:
            [(name, size)] = self._bytes.most_common(1)
            warnings.warn(
                f"The code to upload has more than {LARGE_BYTES / 1e6:.0f} MB, so far {size / 1e6:,.0f} MB of it in "
                f"{name}. All of source_dir is packed and uploaded each time. Move data out of it and give it as a "
                'channel: fit({"train": PATH}).',
                SourceWarning,
                stacklevel=2,
            )
        self._tar.addfile(entry, content)


def _repository(folder: Path) -> Path:
    """The git working tree around a folder, else the folder itself. Links within it are followed; a link to a place
    outside is refused, since it may lead to private files.
    """
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)


def _add(packing: _Packing, name: str, path: Path, boundary: Path, above: tuple[Path, ...]) -> None:
    """Add a file or a directory with all below it. Links become what they point to, as in SDK v2."""
    real = Path(os.path.realpath(path))  # Path.resolve raises for a loop before Python 3.13
    if path.is_symlink() and (not real.is_relative_to(boundary) or ".git" in real.parts):
        raise SourceError(
            f"{path} is a symbolic link to {real}, which is not among the files of {boundary}. Copy the file, or give "
            "it in dependencies=."
        )
    with reading(path, SourceError):
        mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        if real in above:
            raise SourceError(f"{path} is a symbolic link to a directory that contains it. Remove the loop.")
        packing.add(_entry(name, tarfile.DIRTYPE, 0o755))
        with reading(path, SourceError):
            children = sorted(path.iterdir())
        for child in children:
            if not _skipped(child):
                _add(packing, f"{name}/{child.name}", child, boundary, (*above, real))
    elif stat.S_ISREG(mode):
        entry = _entry(name, tarfile.REGTYPE, 0o755 if mode & 0o100 else 0o644)
        with reading(path, SourceError):
            content = path.open("rb")
        with content:
            entry.size = os.fstat(content.fileno()).st_size
            packing.add(entry, content)
    else:
        raise SourceError(
            f"{path} is a socket, pipe or device and cannot be packed. Move it out of the source directory."
        )


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    entry.mode = mode
    entry.mtime = 0
    return entry


def _skipped(path: Path) -> bool:
    """Whether to leave a path out. Virtual environments too: they hold absolute paths of this machine."""
    name = path.name
    return name in SKIPPED_NAMES or name.endswith(SKIPPED_SUFFIXES) or is_file(path / "pyvenv.cfg")
