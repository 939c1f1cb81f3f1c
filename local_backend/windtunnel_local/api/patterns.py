"""The patterns of AWS's models (Java's regular expressions), translated to Python's."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_PROPERTY = re.compile(r"\\p\{(\w+)\}")
_POSIX = {"Alnum": "a-zA-Z0-9", "Alpha": "a-zA-Z", "Digit": "0-9"}
# All letters, marks and numbers of Unicode lie below; above are only private and tag characters.
_LAST_ASSIGNED = 0x323B0


@lru_cache(maxsize=512)
def compiled(pattern: str) -> re.Pattern[str] | None:
    """The pattern, to be used with ``fullmatch``; None when Python has no equivalent.

    The classes of word characters, digits and spaces match ASCII only, as in Java.
    """
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except re.error:
        return None


def _translated(pattern: str) -> str:
    """The pattern with each Unicode property written out as ranges."""
    parts: list[str] = []
    position = 0
    for match in _PROPERTY.finditer(pattern):
        parts.append(pattern[position : match.start()])
        ranges = _POSIX.get(match[1]) or _ranges(match[1])
        parts.append(ranges if _in_class(pattern[: match.start()]) else f"[{ranges}]")
        position = match.end()
    return "".join(parts) + pattern[position:]


def _in_class(before: str) -> bool:
    unescaped = re.sub(r"\\.", "", before)
    return unescaped.rfind("[") > unescaped.rfind("]")


@lru_cache(maxsize=16)
def _ranges(category: str) -> str:
    """The code points of a general category (``L``) as the inside of a character class."""
    ranges: list[str] = []
    start: int | None = None
    for point in range(_LAST_ASSIGNED + 1):
        inside = unicodedata.category(chr(point)).startswith(category)
        if inside and start is None:
            start = point
        elif not inside and start is not None:
            ranges.append(f"\\U{start:08x}-\\U{point - 1:08x}")
            start = None
    return "".join(ranges)
