"""The bytes of somebody's tar.gz on their way to `tarfile`: what it would read for ever, or into memory, has bounds."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

from windtunnel_local.service.ground.errors import InputError

MAX_MEMBERS = 100_000
_MAX_HEADER_BYTES = 1 << 20  # of one member: long names and PAX records
_MAX_HEADERS_BYTES = 256 << 20  # of all members
_MAX_PAX_BYTES = 16 << 10  # two paths of 4 KiB, and what else there may be
_TOO_LARGE = "its headers are larger than any real archive's"
_MANY_DIGITS = re.compile(rb"[0-9]{300}")  # more than a file's name can have


class Unreadable(Exception):
    """The bytes are no gzip-compressed tar archive."""


class TarStream(io.RawIOBase):
    """The unpacked bytes of an archive, with a limit for headers: a zip bomb fills neither memory nor disk."""

    def __init__(self, packed: BinaryIO, refused: Callable[[str], InputError]) -> None:
        """``refused``: the error of an archive that is refused for a reason."""
        self._file = gzip.GzipFile(fileobj=packed, mode="rb")
        self._refused = refused
        self._header_bytes = 0
        self._since_member = 0
        self._in_content = False

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes. Raises ``Unreadable`` or ``InputError``."""
        try:
            data = self._file.read(size)
        except (OSError, EOFError, zlib.error) as error:
            raise Unreadable(error) from error
        if not self._in_content:
            self._header_bytes += len(data)
            self._since_member += len(data)
            if self._since_member > _MAX_HEADER_BYTES or self._header_bytes > _MAX_HEADERS_BYTES:
                raise self._refused(_TOO_LARGE)
        return data

    def content(self, inside: bool) -> None:
        """Say whether what is read next is a file's content, which is counted elsewhere."""
        self._in_content = inside
        self._since_member = 0

    def members(self) -> tarfile.TarFile:
        """The archive, for reading from its beginning to its end."""
        return tarfile.open(mode="r|", fileobj=self, tarinfo=_Member, encoding="utf-8")


class _Member(tarfile.TarInfo):
    """A member whose PAX records are parsed in a moment.

    Python before 3.11.10 and 3.12.6 takes hours for a megabyte of digits, with the interpreter's lock, so that every
    request waits; and all versions hold a text as long as the rest of the records for each of those that overlap.
    """

    def _proc_pax(self, archive: Any) -> Any:
        stream = archive.fileobj
        if self.size > _MAX_PAX_BYTES:
            raise tarfile.ReadError(_TOO_LARGE)
        records = stream.read(-(-self.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE)
        if _MANY_DIGITS.search(records):
            raise tarfile.ReadError("its PAX records have a number of more than 300 digits")
        archive.fileobj = _Again(records, stream)
        try:
            return super()._proc_pax(archive)  # type: ignore[misc]
        finally:
            archive.fileobj = stream


class _Again:
    """A stream of which something was read already, and comes once more."""

    def __init__(self, first: bytes, stream: Any) -> None:
        self._first = first
        self._stream = stream

    def read(self, size: int) -> Any:
        first, self._first = self._first, b""
        return first or self._stream.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
