"""The simulator's lines, one JSON object each, as files of the container hold them.

The script can write there too, and a worker may die in the middle of a line: what is no object is no
line, and what is no figure counts as nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]

_LARGEST_FILE = 1 << 30
"""A worker counts some hundred bytes a step; what a script may have appended is not read to its end."""
_LONGEST_LINE = 1 << 24
_MAX = sys.float_info.max


def records(path: Path) -> Iterable[Record]:
    """The lines of a file that are whole."""
    left = _LARGEST_FILE
    with path.open("rb") as file:
        while left > 0 and (line := file.readline(_LONGEST_LINE)):
            left -= len(line)
            if len(line) == _LONGEST_LINE:
                return  # not ours: a script may have written anything there
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def number(record: Record, key: str) -> float:
    """The figure; 0 where there is none."""
    value = record.get(key)
    # Compared, as a whole number may be larger than any float.
    figure = isinstance(value, int | float) and not isinstance(value, bool) and -_MAX <= value <= _MAX
    return value if figure else 0  # type: ignore[return-value]


def count(record: Record, key: str) -> int:
    """The whole figure."""
    return int(number(record, key))


def numbers(record: Record, key: str) -> dict[str, float]:
    """The figures of an object by name."""
    found = mapping(record, key)
    return {str(name): number(found, name) for name in found}


def mapping(record: Record, key: str) -> Mapping[str, Any]:
    """The object; an empty one where there is none."""
    value = record.get(key)
    return value if isinstance(value, Mapping) else {}


def text(record: Record, key: str) -> str | None:
    """The text; None where there is none."""
    value = record.get(key)
    return value if isinstance(value, str) else None
