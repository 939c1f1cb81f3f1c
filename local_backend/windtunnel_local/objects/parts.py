"""Objects whose bytes lie in several files: the parts of a multipart upload.

To join the parts of a large upload would write all its bytes a second time while the client waits for
its answer. So a completed object keeps the files of its parts, listed in ``parts.json`` of their folder, and
`PartsReader` reads them as one. `FileObjects.path` joins them when one file is needed.
"""

from __future__ import annotations

import bisect
import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

PARTS_FILE = "parts.json"  # of a completed object
UPLOAD_FILE = "upload.json"  # of an upload that is not completed or aborted
_NAME = re.compile(r"([0-9]{5})-([0-9a-f]{32})(?:-([a-z0-9]+)-([0-9a-f]+))?")


@dataclass(frozen=True)
class StoredPart:
    """One stored part. ``etag``: its MD5; ``digest``: its checksum by ``algorithm``; both in hexadecimal."""

    number: int
    size: int
    etag: str
    algorithm: str | None = None
    digest: str | None = None

    @property
    def name(self) -> str:
        """The part's file name: it holds all fields except the size, so that one rename stores the part."""
        checksum = f"-{self.algorithm}-{self.digest}" if self.algorithm else ""
        return f"{self.number:05d}-{self.etag}{checksum}"

    @staticmethod
    def named(path: Path) -> StoredPart | None:
        """The part that a file holds; None if the file is something else, or gone."""
        match = _NAME.fullmatch(path.name)
        if match is None:
            return None
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            return None
        return StoredPart(int(match[1]), size, match[2], match[3], match[4])


def dumped(parts: Sequence[StoredPart]) -> bytes:
    """The content of ``parts.json``."""
    return json.dumps([list(asdict(part).values()) for part in parts]).encode()


def loaded(folder: Path) -> Sequence[StoredPart]:
    """The parts of an object, sorted by number. Raises ``FileNotFoundError``."""
    return [StoredPart(*values) for values in json.loads((folder / PARTS_FILE).read_bytes())]


def tidy(folder: Path) -> int:
    """Remove all files in an object's folder except its parts and ``parts.json``; returns how many."""
    try:
        kept = {part.name for part in loaded(folder)} | {PARTS_FILE}
        unused = [path for path in folder.iterdir() if path.name not in kept]
    except FileNotFoundError:  # the object was replaced or deleted meanwhile
        return 0
    for path in unused:
        path.unlink(missing_ok=True)
    return len(unused)


class PartsReader(io.RawIOBase):
    """Reads an object's parts, one after the other, as one file. ``closed_by`` is called once, by `close`."""

    def __init__(self, folder: Path, parts: Sequence[StoredPart], closed_by: Callable[[], None]) -> None:
        super().__init__()
        self._paths = [folder / part.name for part in parts]
        self._starts = [0, *accumulate(part.size for part in parts)]
        self._position = 0
        self._open: tuple[int, BinaryIO] | None = None
        self._closed_by = closed_by

    def readable(self) -> bool:
        """Always true."""
        return True

    def seekable(self) -> bool:
        """Always true."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Set the position, in bytes."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._starts[-1]}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Read from the part at the position, at most to its end."""
        if self._position >= self._starts[-1]:
            return 0
        at = bisect.bisect_right(self._starts, self._position) - 1
        file = self._part(at)
        file.seek(self._position - self._starts[at])
        count = file.readinto(buffer)  # type: ignore[attr-defined]
        if not count:
            raise OSError(f"{self._paths[at]} is shorter than the object's record says")
        self._position += count
        return int(count)

    def read(self, size: int = -1, /) -> bytes:
        """Up to ``size`` bytes; fewer only at the end of the object."""
        wanted = max(self._starts[-1] - self._position, 0)
        wanted = wanted if size is None or size < 0 else min(size, wanted)
        chunks: list[bytes] = []
        while wanted and (chunk := super().read(wanted)):
            chunks.append(chunk)
            wanted -= len(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def close(self) -> None:
        """Close the open part, and call ``closed_by``. Idempotent."""
        if self.closed:
            return
        super().close()
        if self._open:
            self._open[1].close()
            self._open = None
        self._closed_by()

    def _part(self, at: int) -> BinaryIO:
        if self._open is None or self._open[0] != at:
            if self._open:
                self._open[1].close()
                self._open = None
            self._open = at, self._paths[at].open("rb", buffering=0)
        return self._open[1]
