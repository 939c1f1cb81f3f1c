"""The simulator's lines, one JSON object each, as files of the container hold them.

The script can write there too, and a worker may die in the middle of a line: what is no object is no
line, and what is no figure counts as nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.priceperf.workload.strict_reader import MOST_COUNTED

Record = Mapping[str, Any]

MOST_BYTES = 256 << 20
"""Of a host's files: half a million steps. What a script may have appended is not read to its end."""
LEAST_OF_A_LINE = 512
"""What a line counts for, however short: a step's has some hundred bytes, and in memory `{}` takes nearly as many."""
_LONGEST_LINE = 1 << 24
_BY_NAME = ("graphs", "accessed", "repeated", "sdpa")
"""Of a step: objects of figures."""


@dataclass
class Room:
    """How many bytes of one host are read yet."""

    left: int = field(default_factory=lambda: MOST_BYTES)


def records(path: Path, room: Room) -> Iterable[Record]:
    """The lines of a file that are whole."""
    with path.open("rb") as file:
        while room.left > 0 and (line := file.readline(_LONGEST_LINE)):
            room.left -= max(len(line), LEAST_OF_A_LINE)
            if len(line) == _LONGEST_LINE:
                return  # not ours: a script may have written anything there
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def with_figures(step: Record) -> Record:
    """A step in which all that is summed by name is a figure."""
    found = {key: numbers(step, key) for key in _BY_NAME if key in step}
    uses = mapping(step, "collectives")
    return {**step, **found, "collectives": {name: numbers(uses, name) for name in uses}}


def number(record: Record, key: str) -> float:
    """The figure; 0 where there is none."""
    value = record.get(key)
    return value if is_figure(value) else 0  # type: ignore[return-value]


def is_figure(value: object) -> bool:
    """Whether it is one that counters.json can hold: sums and products of such are in the range of numbers."""
    # Compared, as a whole number may be larger than any float.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and -MOST_COUNTED <= value <= MOST_COUNTED  # type: ignore[operator]


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
