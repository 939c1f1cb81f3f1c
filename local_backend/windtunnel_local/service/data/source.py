"""A look into the source tarball before anything unpacks it."""

from __future__ import annotations

import posixpath
import tarfile
import zlib
from pathlib import Path

from windtunnel_local.service.errors import InputError


def check_archive(archive: Path, uri: str) -> None:
    """Refuse an archive with a member that would leave the directory it is unpacked in.

    Refused: absolute paths, ``..``, links that lead out, members behind a link, devices
    and pipes. The tools in the container unpack without such checks.

    Raises:
        InputError: names the archive, the member and the fix.
    """
    links: set[str] = set()
    try:
        with tarfile.open(archive, mode="r|*") as members:
            for member in members:
                reason = _objection(member, links)
                if reason:
                    raise InputError(
                        f"ClientError: The source archive {uri} is refused: member {member.name!r} {reason}."
                        " Build the archive from files inside one source directory."
                    )
                if member.issym():
                    links.add(posixpath.normpath(member.name))
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise InputError(
            f"ClientError: The source archive {uri} cannot be read ({error}). It must be a gzip-compressed"
            " tar file, as the SDK makes it from source_dir."
        ) from error


def _objection(member: tarfile.TarInfo, links: set[str]) -> str | None:
    """What is wrong with a member; None if nothing is."""
    name = member.name
    if name.startswith("/"):
        return "has an absolute path"
    if ".." in name.split("/"):
        return "leaves the source directory with '..'"
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        return "is a device or a pipe"
    if _parents(name) & links:
        return "lies behind a symbolic link"
    if member.issym() and _leads_out(posixpath.dirname(name), member.linkname):
        return f"is a link that leads out of the source directory, to {member.linkname!r}"
    if member.islnk() and (_leads_out("", member.linkname) or _parents(member.linkname) & links):
        return f"is a link that leads out of the source directory, to {member.linkname!r}"
    return None


def _parents(name: str) -> set[str]:
    """All directories above a member."""
    found = set()
    parent = posixpath.dirname(posixpath.normpath(name))
    while parent:
        found.add(parent)
        parent = posixpath.dirname(parent)
    return found


def _leads_out(directory: str, target: str) -> bool:
    """Whether a link in ``directory`` may resolve to something outside.

    ``..`` counts only at the start: behind a name it could undo another link instead
    of a directory.
    """
    if target.startswith("/"):
        return True
    parts = [part for part in target.split("/") if part not in {"", "."}]
    ups = 0
    while ups < len(parts) and parts[ups] == "..":
        ups += 1
    depth = len([part for part in directory.split("/") if part not in {"", "."}])
    return ups > depth or ".." in parts[ups:]
