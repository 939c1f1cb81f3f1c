"""Object keys as file names: any text, and a directory walk that yields keys in UTF-8 byte order.

A key is cut at each ``/``. Every piece becomes one name, percent-encoded, with a
letter in front that says what follows the piece:

    ``d``   a directory: the piece and then ``/``
    ``c``   a directory: exactly `PIECE` bytes of a segment that goes on
    ``o``   a file: the rest of the key, the object's record

So ``a//b`` is ``da/d/ob``, ``../x`` is ``d../ox``, and ``a`` (``oa``) may stand beside
``a/b`` (``da/ob``). No name is longer than 193 bytes, and none can be ``.`` or ``..``.

Within one directory no decoded name but an object's is a prefix of another, so
sorting the decoded names of each directory sorts all the keys.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote_from_bytes, unquote_to_bytes

from windtunnel_local.objects.errors import InvalidKey

MAX_KEY_BYTES = 1024
PIECE = 64  # three characters a byte at worst: 192, under the 255 of common file systems


def encoded(key: str) -> bytes:
    """The key in UTF-8.

    Raises:
        InvalidKey: empty, too long, or not text.
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
    """The relative path of a key's record."""
    names = list(_folders(encoded(key)))
    return Path(*names)


def walk(root: Path, prefix: bytes, first: bytes) -> Iterator[tuple[bytes, Path]]:
    """Keys with the prefix and >= ``first``, in byte order, each with its record's path."""
    folder, base = root, b""
    # What the prefix settles needs no listing: go straight to the directory that holds the matches.
    for name in _folders(prefix):
        if name.startswith("o"):
            break
        folder, base = folder / name, base + _decode(name)
    yield from _walk(folder, base, prefix, first)


def _walk(folder: Path, base: bytes, prefix: bytes, first: bytes) -> Iterator[tuple[bytes, Path]]:
    try:
        names = os.listdir(folder)  # noqa: PTH208  names alone: a Path for each entry costs 5x
    except (FileNotFoundError, NotADirectoryError):
        return
    for full, name in sorted((base + _decode(name), name) for name in names):
        if name.startswith("o"):
            if full >= first and full.startswith(prefix):
                yield full, folder / name
            continue
        matches = full.startswith(prefix) or prefix.startswith(full)
        if matches and (full >= first or first.startswith(full)):
            yield from _walk(folder / name, full, prefix, first)


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
