"""Notes of who waits in a collective for long, in a folder, for the process that ends the job and cannot ask workers.

Needs no torch: `train` reads them while it is being ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from neuron_sim import atomic_file, processes

_PREFIX = "waits-"


@dataclass(frozen=True)
class Note:
    """One process's wait. ``since``: `time.time()` at its begin; ``missing``: ranks that are in no collective.

    ``where``: what these ranks do, if they were asked.
    """

    rank: int
    place: str
    since: float
    missing: list[int]
    where: str


def leave(folder: Path, note: Note) -> None:
    """Write this process's note, in place of its last one. If that fails, there is no note, and training goes on."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        atomic_file.write(folder / f"{_PREFIX}{os.getpid()}", json.dumps(asdict(note)))


def take_back(folder: Path) -> None:
    """Remove this process's note: it waits no longer."""
    with contextlib.suppress(OSError):
        (folder / f"{_PREFIX}{os.getpid()}").unlink(missing_ok=True)


def there(folder: Path) -> list[Note]:
    """The notes of running processes, in the order of their ranks."""
    found = []
    for path in folder.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, ValueError, TypeError):
            if processes.use(int(path.name.removeprefix(_PREFIX))) is not None:
                found.append(Note(**json.loads(path.read_text())))
    return sorted(found, key=lambda note: note.rank)


def lines(notes: Iterable[Note]) -> list[str]:
    """``ranks 0, 2-31 had waited 93 s in all_reduce at train.py:45 for rank 1 (is at train.py:40)``: one per place."""
    places: dict[tuple[str, tuple[int, ...]], list[Note]] = defaultdict(list)
    for note in notes:
        places[note.place, tuple(note.missing)].append(note)
    return [
        f"{ranks(note.rank for note in group)} had waited {time.time() - min(n.since for n in group):.0f} s in {where}"
        + (f" for {ranks(missing)}" if missing else "")
        + next((f" ({note.where})" for note in group if note.where), "")
        for (where, missing), group in places.items()
    ]


def ranks(numbers: Iterable[int]) -> str:
    """``rank 3`` or ``ranks 0-16, 18-31``."""
    ordered = sorted(numbers)
    runs: list[list[int]] = []
    for rank in ordered:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    text = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
    return f"rank{'s' if len(ordered) > 1 else ''} {text}"
