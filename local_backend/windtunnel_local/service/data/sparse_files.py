"""Adds sparse files to a tar archive without writing their holes.

It uses GNU tar's sparse format 1.0 in PAX headers, which GNU tar, libarchive and Python's tarfile
read: https://www.gnu.org/software/tar/manual/html_section/Sparse-Formats.html.
"""

from __future__ import annotations

import io
import os
import posixpath
import tarfile
from collections.abc import Iterator
from typing import Any, BinaryIO

_LEAST_HOLES_BYTES = 1 << 20
"""A file whose holes have fewer bytes in total is written whole, with zeros for the holes."""
_MOST_PIECES = 10_000


def add_file(tar: tarfile.TarFile, info: tarfile.TarInfo, content: BinaryIO) -> None:
    """Add a regular file at its current size, from its first byte on."""
    status = os.fstat(content.fileno())
    info.size = status.st_size
    pieces = []
    if status.st_size - 512 * status.st_blocks >= _LEAST_HOLES_BYTES:
        pieces = _pieces(content.fileno(), status.st_size)
    if not 0 < len(pieces) <= _MOST_PIECES:
        tar.addfile(info, content)
        return
    listed = "".join(f"{number}\n" for number in (len(pieces), *(part for piece in pieces for part in piece)))
    head = listed.encode().ljust(-(-len(listed) // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE, b"\0")
    info.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": info.name,
        "GNU.sparse.realsize": str(status.st_size),
    }
    folder, name = posixpath.split(info.name)
    info.name = posixpath.join(folder, "GNUSparseFile.0", name)
    info.size = len(head) + sum(size for _, size in pieces)
    tar.addfile(info, io.BufferedReader(_Pieces(head, pieces, content)))


def _pieces(descriptor: int, size: int) -> list[tuple[int, int]]:
    """The parts of a file that are not holes, as (offset, size); the last one is empty and at the file's end."""
    found: list[tuple[int, int]] = []
    end = 0
    while end < size and len(found) <= _MOST_PIECES:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError:  # there is only a hole up to the end
            break
        end = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
        found.append((start, end - start))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return [*found, (size, 0)]


class _Pieces(io.RawIOBase):
    """The file's content in the archive: the list of pieces, then their bytes; zeros if the file has shrunk since."""

    def __init__(self, head: bytes, pieces: list[tuple[int, int]], content: BinaryIO) -> None:
        self._blocks = self._read(head, pieces, content)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        if not self._rest:
            self._rest = memoryview(next(self._blocks, b""))
        taken = min(len(buffer), len(self._rest))
        buffer[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        return taken

    @staticmethod
    def _read(head: bytes, pieces: list[tuple[int, int]], content: BinaryIO) -> Iterator[bytes]:
        yield head
        for start, size in pieces:
            content.seek(start)
            left = size
            while left:
                block = content.read(min(left, 1 << 20)) or bytes(min(left, 1 << 20))
                left -= len(block)
                yield block
