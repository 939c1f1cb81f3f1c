"""Pages of listings, by S3's rules for prefix and delimiter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from windtunnel_local.objects import keys
from windtunnel_local.objects.records import Record
from windtunnel_local.service.ground.ports import ObjectInfo


@dataclass(frozen=True)
class Page:
    """A page of a listing. For the next page, pass ``next`` as ``after``; None: this is the last page."""

    objects: Sequence[ObjectInfo]
    prefixes: Sequence[str]
    next: str | None


def page(root: Path, prefix: str, delimiter: str, after: str, limit: int, names: keys.Names) -> Page:
    """One page of the keys below ``root``. Keys that are equal up to ``delimiter`` are listed as one prefix."""
    start, cut = prefix.encode(), delimiter.encode()
    first = after.encode() + b"\0" if after else b""
    if cut and after.startswith(prefix) and after[len(prefix) :].endswith(delimiter):
        first = _behind(after.encode())  # the page before ended with this rolled-up prefix
    objects: list[ObjectInfo] = []
    prefixes: list[str] = []
    last = ""
    while True:
        for raw, path in keys.walk(root, start, first, names):
            if len(objects) + len(prefixes) >= limit:
                return Page(objects, prefixes, last if limit else None)
            at = raw.find(cut, len(start)) if cut else -1
            if at >= 0:
                rolled = raw[: at + len(cut)]
                last = rolled.decode()
                prefixes.append(last)
                first = _behind(rolled)
                break  # continue after all keys with this prefix
            if record := Record.load(path):
                objects.append(record.info)
                last = record.key
        else:
            return Page(objects, prefixes, None)


def _behind(raw: bytes) -> bytes:
    """The first byte string that does not start with ``raw`` and sorts after all that do."""
    return raw[:-1] + bytes([raw[-1] + 1])  # UTF-8 never ends in 0xFF
