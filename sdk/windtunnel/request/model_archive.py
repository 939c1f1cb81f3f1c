"""model.tar.gz and the code that serves it -> one model.tar.gz, as SageMaker's images want it: the code in ``code/``.

Both archives are read as streams, so that memory stays flat whatever the model's size. What is in the model's
archive stays as it is; only ``code/`` may be replaced. An archive with a member that would leave the folder it is
unpacked in is refused: the model may come from anywhere.
"""

from __future__ import annotations

import gzip
import posixpath
import tarfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import IO

from windtunnel.errors import SourceError

CODE = "code"
# Weights hardly compress: a higher level would take minutes for a few bytes.
_LEVEL = 1
_CHUNK_BYTES = 2**20


def repack(model: IO[bytes], code: IO[bytes], out: IO[bytes], *, replace_code: bool) -> None:
    """Write the model's members, with the code's below ``code/``, as a .tar.gz. Blocks; reads both to their end.

    Args:
        model: a .tar.gz.
        code: another, whose root becomes ``code/``.
        out: where the archive goes.
        replace_code: nothing that the model has below ``code/`` stays; else only files of the same name go.

    Raises:
        SourceError: one of the two is no .tar.gz, is cut off, or has a member that would leave its folder.
    """
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=_LEVEL, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8") as target,
    ):
        # The code first: which of the model's files it replaces is then known.
        written = set(_copy(code, target, f"{CODE}/", "the code's archive"))
        if CODE not in written:
            folder = tarfile.TarInfo(CODE)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            target.addfile(folder)
        for _ in _copy(model, target, "", "model.tar.gz", written, CODE if replace_code else None):
            pass


def _copy(
    source: IO[bytes],
    target: tarfile.TarFile,
    below: str,
    what: str,
    without: Collection[str] = (),
    without_folder: str | None = None,
) -> Iterator[str]:
    """Copy the members; gives the path of each, as it is in the target."""
    links: set[str] = set()
    # Through gzip rather than tarfile's own "r|gz": that one never looks at the checksum.
    with (
        _reading(what),
        gzip.GzipFile(fileobj=source, mode="rb") as plain,
        tarfile.open(fileobj=plain, mode="r|") as tar,
    ):
        for member in tar:
            path = _checked(member, links, what)
            place = posixpath.normpath(below + path)
            outside = without_folder is None or not _is_below(place, without_folder)
            if place not in without and outside:
                content = tar.extractfile(member) if member.isreg() else None
                target.addfile(_renamed(member, below), content)
            yield place
        while plain.read(_CHUNK_BYTES):
            pass  # to the end, where the checksum is


def _renamed(member: tarfile.TarInfo, below: str) -> tarfile.TarInfo:
    if below:
        member.name = below + member.name
        if member.islnk():  # a hard link names its file from the root
            member.linkname = below + member.linkname
    if member.issparse():  # it is read in full
        member.type = tarfile.REGTYPE
    # Of the archive's own headers none is left to contradict what is set above.
    member.pax_headers = {}
    return member


def _checked(member: tarfile.TarInfo, links: set[str], what: str) -> str:
    """The member's path, normalised. ``links``: the symbolic links so far; a link is added.

    Raises:
        SourceError: it leaves the folder, goes through a link, or is no file, folder or link.
    """
    path = posixpath.normpath(member.name)
    if posixpath.isabs(member.name) or _leaves(path) or ".." in member.name.split("/"):
        raise _refused(what, member, "which would be unpacked outside its folder")
    if any(_is_below(path, link) and path != link for link in links):
        raise _refused(what, member, "which goes through a link of the archive")
    if member.islnk() or member.issym():
        above = posixpath.dirname(path) if member.issym() else ""
        parts = member.linkname.split("/")
        # ".." behind a name may be the parent of what that name, as a link, leads to.
        climbs = [part for part in parts if part not in ("", ".")]
        within = ".." not in climbs[next((i for i, part in enumerate(climbs) if part != ".."), len(climbs)) :]
        if posixpath.isabs(member.linkname) or _leaves(posixpath.join(above, member.linkname)) or not within:
            raise _refused(what, member, f"a link to {member.linkname!r}, which may lead out of its folder")
        if member.issym():
            links.add(path)
    elif not (member.isreg() or member.isdir()):
        raise _refused(what, member, "a device or a pipe")
    return path


def _leaves(path: str) -> bool:
    return posixpath.normpath(path).split("/")[0] == ".."


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _refused(what: str, member: tarfile.TarInfo, why: str) -> SourceError:
    return SourceError(
        f"{what} has the member {member.name!r}, {why}: nothing was uploaded. Pack it again without that member."
    )


@contextmanager
def _reading(what: str) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(
            f"{what} cannot be read as a .tar.gz: {error}. Pack it from inside the model's folder: "
            "tar czf ../model.tar.gz *"
        ) from error
