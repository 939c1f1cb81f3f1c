"""Pack a model and its serving code into one model.tar.gz, the code in ``code/``, as SageMaker's images expect it.

Both archives are read as streams, so that memory stays flat whatever the model's size. The model's files stay as
they are; only ``code/`` may be replaced. The model may come from anywhere, so an archive is refused if one of its
members would be unpacked outside its folder.
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
    """Write a .tar.gz of the model's members and, below ``code/``, the code's. Blocks; reads both to their end.

    Args:
        model: a .tar.gz.
        code: a .tar.gz whose root becomes ``code/``.
        out: the file to write the archive to.
        replace_code: drop all that the model has below ``code/``; else only files of the same name are replaced.

    Raises:
        SourceError: one of the two is no .tar.gz, is cut off, or has a member that would leave its folder.
    """
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=_LEVEL, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8") as target,
    ):
        # The code first: then it is known which of the model's files it replaces.
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
    """Copy the members, except those of ``without``, and yield the path in the target of each, copied or not."""
    links: set[str] = set()
    # Through gzip, because tarfile's own "r|gz" never checks the checksum.
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
            pass  # the checksum is at the end


def _renamed(member: tarfile.TarInfo, below: str) -> tarfile.TarInfo:
    if below:
        member.name = below + member.name
        if member.islnk():  # a hard link names its file from the root
            member.linkname = below + member.linkname
    if member.issparse():  # its content is read with the holes filled
        member.type = tarfile.REGTYPE
    # The source archive's headers would override the names set above.
    member.pax_headers = {}
    return member


def _checked(member: tarfile.TarInfo, links: set[str], what: str) -> str:
    """The member's normalised path. ``links``: symbolic links found so far; if the member is one, it is added.

    Raises:
        SourceError: the path leaves the folder or goes through a link, or the member is no file, folder or link.
    """
    path = posixpath.normpath(member.name)
    if posixpath.isabs(member.name) or _leaves(path) or ".." in member.name.split("/"):
        raise _refused(what, member, "which would be unpacked outside its folder")
    if any(_is_below(path, link) and path != link for link in links):
        raise _refused(what, member, "which goes through a link of the archive")
    if member.islnk() or member.issym():
        above = posixpath.dirname(path) if member.issym() else ""
        parts = member.linkname.split("/")
        # In "name/..", the name may be a link: ".." is then the parent of the link's target.
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
