"""Reads the simulator's records: JSON objects, one a line, in files that the container writes.

The script can write to these files too, and a worker may die in the middle of a line. So a line that is
not a JSON object is skipped, and a value that is not a valid number counts as 0.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windtunnel.priceperf.workload.strict_reader import MOST_COUNTED

Record = Mapping[str, Any]

MOST_BYTES = 256 << 20
"""The most bytes read of one host's files: enough for half a million steps. A script may have appended any amount."""
LEAST_OF_A_LINE = 512
"""A shorter line counts as so many bytes: in memory, even `{}` takes nearly as many as a step's some hundred."""
_LONGEST_LINE = 1 << 24
BY_NAME = ("graphs", "accessed", "repeated", "sdpa")
"""Members of a step's record that are objects of numbers."""


@dataclass
class Room:
    """How many more bytes may be read of one host's files."""

    left: int = field(default_factory=lambda: MOST_BYTES)


def records(path: Path, room: Room) -> Iterable[Record]:
    """The records of a file; skips lines that are not JSON objects, and stops when ``room`` is used up."""
    with path.open("rb") as file:
        while room.left > 0 and (line := file.readline(_LONGEST_LINE)):
            room.left -= max(len(line), LEAST_OF_A_LINE)
            if len(line) == _LONGEST_LINE:
                return  # the simulator writes no such line: a script has written into the file
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def with_figures(step: Record) -> Record:
    """The step's record, in which all members that are summed by name hold valid numbers only."""
    found = {key: numbers(step, key) for key in BY_NAME if key in step}
    uses = mapping(step, "collectives")
    return {**step, **found, "collectives": {name: numbers(uses, name) for name in uses}}


def summed(steps: Iterable[Record], key: str) -> Counter[str]:
    """The numbers at ``key``, one of `BY_NAME`, added up by name over steps that `with_figures` has checked."""
    found: Counter[str] = Counter()
    for step in steps:
        found.update(step.get(key, {}))
    return found


def number(record: Record, key: str) -> float:
    """The number at ``key``; 0 if there is no valid one."""
    value = record.get(key)
    return value if is_figure(value) else 0  # type: ignore[return-value]


def is_figure(value: object) -> bool:
    """Whether a value is a number small enough for counters.json: sums and products of such numbers do not overflow."""
    # By comparison, because an int may be too large to convert into a float.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and -MOST_COUNTED <= value <= MOST_COUNTED  # type: ignore[operator]


def count(record: Record, key: str) -> int:
    """The number at ``key`` as an int; 0 if there is no valid one."""
    return int(number(record, key))


def numbers(record: Record, key: str) -> dict[str, float]:
    """The numbers, by name, of the object at ``key``."""
    found = mapping(record, key)
    return {str(name): number(found, name) for name in found}


def mapping(record: Record, key: str) -> Mapping[str, Any]:
    """The object at ``key``; an empty one if there is none."""
    value = record.get(key)
    return value if isinstance(value, Mapping) else {}


def text(record: Record, key: str) -> str | None:
    """The text at ``key``; None if there is none."""
    value = record.get(key)
    return value if isinstance(value, str) else None
