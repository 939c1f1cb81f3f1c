"""Unpacks a user's tar.gz for `tarfile`, with limits where `tarfile` would read for ever or fill the memory."""

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
_MAX_PAX_BYTES = 16 << 10  # two paths of 4 KiB, and room for other records
_TOO_LARGE = "its headers are larger than any real archive's"
_MANY_DIGITS = re.compile(rb"[0-9]{300}")  # more than the 255 bytes of a file's name


class Unreadable(Exception):
    """The file is not a gzip-compressed tar archive."""


class TarStream(io.RawIOBase):
    """The unpacked bytes of an archive. Headers are limited, so that a zip bomb cannot fill memory or disk."""

    def __init__(self, packed: BinaryIO, refused: Callable[[str], InputError]) -> None:
        """``refused`` makes the error for an archive, from the reason why it is refused."""
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
        """Tell whether the next bytes are a file's content: its limit is checked elsewhere, not by this class."""
        self._in_content = inside
        self._since_member = 0

    def members(self) -> tarfile.TarFile:
        """The archive, to be read once from its beginning to its end."""
        return tarfile.open(mode="r|", fileobj=self, tarinfo=_Member, encoding="utf-8")


class _Member(tarfile.TarInfo):
    """A member whose PAX records are limited, so that they are parsed quickly.

    Python before 3.11.10 and 3.12.6 takes hours to parse a megabyte of digits, and holds the global interpreter lock,
    so that every request waits. In all versions, each record that overlaps the next ones takes memory for all the rest.
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
    """A stream whose first ``read`` returns bytes that were read before."""

    def __init__(self, first: bytes, stream: Any) -> None:
        self._first = first
        self._stream = stream

    def read(self, size: int) -> Any:
        first, self._first = self._first, b""
        return first or self._stream.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
