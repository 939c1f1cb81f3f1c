"""Checks the source tarball and writes a new one for the container.

The tools in the container unpack an archive as the job's user, without checks. So they do not get
the user's archive but one written here, which has only plain files, directories and links that stay
inside. A crafted header that another program would read differently cannot pass, as all are rewritten.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Literal

from windtunnel_local.service.data.tar_stream import MAX_MEMBERS, TarStream, Unreadable
from windtunnel_local.service.ground.errors import InputError

MAX_BYTES = 4 << 30
_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 4000  # below Linux's 4096, with room for the path of the folder it is unpacked in
_MAX_MTIME = 0o77777777777
_BLOCK = 1 << 20
_SEARCHED_BYTES = 256 << 20

_Kind = Literal["a file", "a directory", "a symbolic link"]


def provide_archive(original: Path, target: Path, uri: str) -> None:
    """Check every member of ``original`` and write them to ``target``, a new tar.gz. Blocks.

    Refused: absolute paths, ``..``, links that lead out, members below a link, devices, pipes and
    sparse files, names that no file system takes, more than `MAX_BYTES` unpacked, more than `MAX_MEMBERS`.

    Raises:
        InputError: the archive is refused (names the archive, the member, the reason and what to do), or ``target``
            cannot be written.
    """
    draft = target.with_name(target.name + ".tmp")
    try:
        with original.open("rb") as packed, draft.open("wb") as file:
            _rewrite(_Source(packed, uri), file)
        draft.replace(target)
    except Unreadable as error:
        raise InputError(
            f"ClientError: The source archive {uri} cannot be read ({error}). It must be a gzip-compressed"
            " tar file, as the SDK makes it from source_dir."
        ) from error
    except OSError as error:
        raise InputError(
            f"ClientError: Data download failed: {uri} could not be written to {target}:"
            f" {error.strerror or error}."
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def read_script(original: Path, uri: str, ending: str, most_bytes: int) -> bytes | None:
    """The first ``most_bytes`` of the file whose path in the archive is ``ending`` or ends with ``/ending``, or None.

    If there are several, the one nearest to the top. Searches the first `_SEARCHED_BYTES`. Blocks.

    Raises:
        InputError: it is not an archive, or one that `provide_archive` would refuse.
    """
    found: tuple[int, bytes] | None = None
    seen = 0
    try:
        with original.open("rb") as packed:
            for member, content in _members(_Source(packed, uri)):
                seen += member.size
                if seen > _SEARCHED_BYTES:
                    break
                name = posixpath.normpath(member.name)
                depth = name.count("/")
                fits = content is not None and (name == ending or name.endswith(f"/{ending}"))
                if content is not None and fits and (found is None or depth < found[0]):
                    found = depth, content.read(most_bytes)
    except (Unreadable, OSError) as error:
        raise InputError(f"The source archive {uri} cannot be read ({error}).") from error
    return None if found is None else found[1]


class _Source(TarStream):
    """The user's archive, from ``uri``."""

    def __init__(self, packed: BinaryIO, uri: str) -> None:
        super().__init__(packed, self.refused)
        self.uri = uri

    def refused(self, reason: str, member: tarfile.TarInfo | None = None) -> InputError:
        """The error that names the archive, the reason and the member."""
        which = f"member {_shown(member.name)} " if member else ""
        return InputError(
            f"ClientError: The source archive {self.uri} is refused: {which}{reason}."
            " Build the archive from files inside one source directory."
        )


def _rewrite(source: _Source, file: io.BufferedWriter) -> None:
    # GNU's format stores names as bytes, whatever their encoding, and all tools read it in the same way.
    with (
        gzip.GzipFile("", "wb", compresslevel=1, fileobj=file, mtime=0) as packed,
        tarfile.open(mode="w|", fileobj=packed, format=tarfile.GNU_FORMAT, encoding="utf-8") as out,
    ):
        for member, content in _members(source):
            out.addfile(member, content)


def _members(source: _Source) -> Iterator[tuple[tarfile.TarInfo, io.BufferedIOBase | None]]:
    """The members, checked and made plain, each with its content. Raises ``InputError``, ``Unreadable``."""
    seen: dict[str, _Kind] = {}
    left = MAX_BYTES
    try:
        with source.members() as tar:
            for number, member in enumerate(tar):
                if number >= MAX_MEMBERS:
                    raise source.refused(f"it has more than {MAX_MEMBERS} members")
                reason = _objection(member, seen)
                if reason:
                    raise source.refused(reason, member)
                left -= member.size if member.isreg() else 0
                if left < 0:
                    raise source.refused(f"makes it unpack to more than {MAX_BYTES >> 30} GiB", member)
                source.content(member.isreg())
                if posixpath.normpath(member.name) != ".":
                    yield _plain(member), _Content(tar, member) if member.isreg() else None
                source.content(False)
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        raise Unreadable(error) from error


class _Content(io.BufferedIOBase):
    """The content of a member, as a file. If the archive ends too early, reading raises ``Unreadable``."""

    def __init__(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        self._file = tar.extractfile(member)

    def read(self, size: int | None = -1, /) -> bytes:
        """Up to ``size`` bytes. Raises ``Unreadable``."""
        try:
            data = self._file.read(-1 if size is None else size) if self._file else b""
        except tarfile.TarError as error:
            raise Unreadable(error) from error
        if not data and size:
            raise Unreadable("unexpected end of data")
        return data


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A copy of the member without owners, special permission bits and times out of range."""
    info = tarfile.TarInfo(posixpath.normpath(member.name))
    info.type = tarfile.REGTYPE if member.isreg() else member.type
    info.size = member.size if member.isreg() else 0
    info.mode = member.mode & 0o777 | (0o700 if member.isdir() else 0o600)
    with suppress(ValueError, OverflowError):  # NaN or infinity
        info.mtime = min(max(int(member.mtime), 0), _MAX_MTIME)
    if member.issym():
        info.linkname = member.linkname
    elif member.islnk():
        info.linkname = posixpath.normpath(member.linkname)
    return info


def _objection(member: tarfile.TarInfo, seen: dict[str, _Kind]) -> str | None:
    """Why a member is refused; None if it is allowed, and then it is added to ``seen``."""
    name = posixpath.normpath(member.name)
    reason = _bad_name(member.name) or _bad_kind(member)
    if reason or name == ".":
        return reason if reason or member.isdir() else "is the source directory itself"
    for parent in _parents(name):
        kind = seen.setdefault(parent, "a directory")
        if kind != "a directory":
            return f"lies behind {kind}"
    kind = _kind(member)
    earlier = seen.get(name, kind)
    if earlier != kind or (name in seen and (kind == "a symbolic link" or member.islnk())):
        return f"appears twice, as {earlier} and as {'a hard link' if member.islnk() else kind}"
    if member.issym() and _leads_out(posixpath.dirname(name), member.linkname):
        return f"is a link that leads out of the source directory, to {_shown(member.linkname)}"
    if member.islnk() and seen.get(posixpath.normpath(member.linkname)) != "a file":
        return (
            f"is a link that leads out of the source directory, to {_shown(member.linkname)}: a hard link must"
            " name a file that comes before it"
        )
    seen[name] = kind
    return None


def _bad_name(name: str) -> str | None:
    raw = name.encode("utf-8", "surrogateescape")
    if name.startswith("/"):
        return "has an absolute path"
    if ".." in name.split("/"):
        return "leaves the source directory with '..'"
    if not name or "\0" in name:
        return "has a name that no file can have"
    if len(raw) > _MAX_PATH_BYTES or any(len(part) > _MAX_NAME_BYTES for part in raw.split(b"/")):
        return f"has a name longer than {_MAX_NAME_BYTES} bytes, or a path longer than {_MAX_PATH_BYTES}"
    return None


def _bad_kind(member: tarfile.TarInfo) -> str | None:
    if member.issparse():
        return "is a sparse file (leave out tar's --sparse)"
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        return "is a device or a pipe"
    if member.size < 0:
        return "has a negative size"
    if member.issym() or member.islnk():
        target = member.linkname.encode("utf-8", "surrogateescape")
        if not target or b"\0" in target or len(target) > _MAX_PATH_BYTES:
            return "is a link to a name that no file can have"
    return None


def _kind(member: tarfile.TarInfo) -> _Kind:
    if member.isdir():
        return "a directory"
    return "a symbolic link" if member.issym() else "a file"


def _parents(name: str) -> Iterator[str]:
    """All directories above a member, from the top."""
    parts = name.split("/")
    for count in range(1, len(parts)):
        yield "/".join(parts[:count])


def _leads_out(directory: str, target: str) -> bool:
    """Whether a link in ``directory`` may lead out of the source directory.

    ``..`` is allowed only at the start of the target: after a name that is a link, it would not lead
    back to the folder in which the name is.
    """
    if target.startswith("/"):
        return True
    parts = [part for part in target.split("/") if part not in {"", "."}]
    ups = 0
    while ups < len(parts) and parts[ups] == "..":
        ups += 1
    depth = len([part for part in directory.split("/") if part not in {"", "."}])
    return ups > depth or ".." in parts[ups:]


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 200 else f"{name[:200]}... ({len(name)} characters)")
