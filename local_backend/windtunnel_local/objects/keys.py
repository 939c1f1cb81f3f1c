"""Object keys as file names: any key has a path, and a directory walk yields the keys in UTF-8 byte order.

A key is split at each ``/``. Every piece becomes one file name, percent-encoded, after a
letter that says what follows the piece:

    ``d``   a directory: the piece and then ``/``
    ``c``   a directory: exactly `PIECE` bytes of a longer segment
    ``o``   a file: the rest of the key, the object's record

So ``a//b`` is ``da/d/ob``, ``../x`` is ``d../ox``, and ``a`` (``oa``) may stand beside
``a/b`` (``da/ob``). No name is longer than 193 bytes, and none can be ``.`` or ``..``.

Within one directory only an object's decoded name can be a prefix of another, so
sorting the decoded names of each directory sorts all the keys.
"""

from __future__ import annotations

import bisect
import itertools
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote_from_bytes, unquote_to_bytes

from windtunnel_local.objects.errors import InvalidKey
from windtunnel_local.service.ground.uris import MAX_KEY_BYTES

Entries: TypeAlias = "Sequence[tuple[bytes, str]]"

PIECE = 64  # at most three characters a byte when encoded: 192, under the 255 of common file systems
_FEW = 500  # entries of a directory that is not worth keeping: it is read again
_MOST_KEPT = 200_000  # most entries kept, of all directories: about 30 MB


def encoded(key: str) -> bytes:
    """The key in UTF-8.

    Raises:
        InvalidKey: the key is empty, too long, or not valid Unicode.
    """
    try:
        raw = key.encode()
    except UnicodeEncodeError as error:
        raise InvalidKey("An object key must be Unicode text; this one has a lone surrogate.") from error
    if not raw:
        raise InvalidKey("An object key has at least 1 byte.")
    if len(raw) > MAX_KEY_BYTES:
        raise InvalidKey(f"Your key is too long: {len(raw)} bytes; at most {MAX_KEY_BYTES} are allowed.")
    return raw


def record_path(key: str) -> Path:
    """The path of a key's record, relative to the folder ``keys``."""
    names = list(_folders(encoded(key)))
    return Path(*names)


def walk(root: Path, prefix: bytes, first: bytes, names: Names | None = None) -> Iterator[tuple[bytes, Path]]:
    """The keys that begin with ``prefix`` and are >= ``first``, in byte order, each with its record's path."""
    folder, base = root, b""
    # The prefix names the first directories: go straight to the one that holds the matches.
    for name in _folders(prefix):
        if name.startswith("o"):
            break
        folder, base = folder / name, base + _decode(name)
    names = names or Names()
    pending = [_level(folder, base, prefix, first, names)]
    while pending:  # no recursion: a key may have a thousand levels
        full, path = next(pending[-1], (b"", None))
        if path is None:
            pending.pop()
        elif path.name.startswith("o"):
            yield full, path
        else:
            pending.append(_level(path, full, prefix, first, names))


def _level(
    folder: Path, base: bytes, prefix: bytes, first: bytes, names: Names
) -> Iterator[tuple[bytes, Path]]:
    """The entries of one directory that match: records, and directories that may hold matching records."""
    entries = names.of(folder)
    low = max(prefix, first)
    start = bisect.bisect_left(entries, (low[len(base) :], "")) if low.startswith(base) else 0
    # The directory that holds the first match may sort before it: start one entry earlier.
    for decoded, name in itertools.islice(entries, max(start - 1, 0), None):
        full = base + decoded
        if full > prefix and not full.startswith(prefix):
            return  # all that follow sort after the matches
        if name.startswith("o"):
            if full >= first and full.startswith(prefix):
                yield full, folder / name
            continue
        matches = full.startswith(prefix) or prefix.startswith(full)
        if matches and (full >= first or first.startswith(full)):
            yield full, folder / name


class Names:
    """The sorted names in directories. Those of large ones are cached, since each page of a listing needs them.

    After adding or removing a name, call `changed`. Thread-safe.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Path, Entries] = OrderedDict()
        self._readings: dict[Path, list[object]] = {}
        self._lock = threading.Lock()

    def of(self, folder: Path) -> Entries:
        """Pairs of decoded and real name, sorted by the decoded; empty if there is no such directory."""
        reading = object()
        with self._lock:
            if (kept := self._kept.get(folder)) is not None:
                self._kept.move_to_end(folder)
                return kept
            self._readings.setdefault(folder, []).append(reading)
        try:
            names = os.listdir(folder)  # noqa: PTH208  a Path for each entry would take 5 times as long
        except (FileNotFoundError, NotADirectoryError):
            names = []
        entries = sorted((_decode(name), name) for name in names)
        with self._lock:
            current = self._readings.get(folder, [])
            if reading in current:  # else the directory changed during the reading
                current.remove(reading)
                if not current:
                    del self._readings[folder]
                if _FEW < len(entries) <= _MOST_KEPT:
                    self._kept[folder] = entries
                    while sum(map(len, self._kept.values())) > _MOST_KEPT:
                        self._kept.popitem(last=False)
        return entries

    def changed(self, folder: Path) -> None:
        """Drop a directory from the cache; a reading of it that has begun is not kept either."""
        with self._lock:
            self._kept.pop(folder, None)
            self._readings.pop(folder, None)


def _folders(raw: bytes) -> Iterator[str]:
    *directories, last = raw.split(b"/")
    for segment in directories:
        while len(segment) >= PIECE:
            yield "c" + _encode(segment[:PIECE])
            segment = segment[PIECE:]
        yield "d" + _encode(segment)
    while len(last) >= PIECE:
        yield "c" + _encode(last[:PIECE])
        last = last[PIECE:]
    yield "o" + _encode(last)


def _encode(piece: bytes) -> str:
    return quote_from_bytes(piece, safe="")


def _decode(name: str) -> bytes:
    piece = unquote_to_bytes(name[1:])
    return piece + b"/" if name.startswith("d") else piece
