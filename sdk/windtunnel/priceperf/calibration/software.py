"""How much faster or slower than modelled a software trains, as far as its published rows say.

Constants hold the speed of the software whose rows they are fitted to. Of other software
(`published_rows.elsewhere`) each model that it trained tells one difference. Their mean, drawn to none, is expected
of its next model. Told apart are one node and many (`left_out.kind_of`), and products in fp8.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from statistics import mean

from ..errors import InvalidInput, quoted
from ..model.training_settings import Training
from .left_out import Errors, fitted, kind_of
from .published_rows import elsewhere, is_fitted, rows_of
from .row_reader import PublishedRow

_SHRINKAGE = 1
"""Models on which a software is taken to make no difference, beside those that tell."""


def software_named(name: str) -> str:
    """The software of that name, whatever its case, as published rows spell it.

    Raises:
        InvalidInput: no published row is by it; the message lists all.
    """
    known = {stack.lower(): stack for key in fitted()["calibrations"] for stack in _known(key)}
    found = known.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        names = "; ".join(sorted(known.values(), key=str.lower))
        raise InvalidInput(
            f"software {quoted(name)} has no published row. Leave it out, or give one of these: {names}"
        )
    return found


def software_of(row: PublishedRow) -> str | None:
    """What trained a row of a file, if other rows are by it.

    As its ``stack`` says; else the one software whose words all stand in the row's name or in the repository that
    its source begins with; else the only software of that repository.
    """
    known = _known(row.calibration)
    if row.stack:
        return {stack.lower(): stack for stack in known}.get(row.stack.lower())
    words = _words(f"{row.config} {_repository(row)}")
    named = [stack for stack in known if words.issuperset(_words(stack))]
    named = named or [stack for stack, repositories in known.items() if _repository(row) in repositories]
    return named[0] if len(named) == 1 else None


def log_speed(
    software: str | None, kind: str, training: Training, but: Callable[[PublishedRow], bool] | None = None
) -> float | None:
    """Log of the throughput beside the modelled one. None: nothing is known, or constants hold it.

    Args:
        software: as `software_named` spells it; None: not told.
        kind: of the rows that it is like, see `left_out.kind_of`.
        training: what is trained.
        but: rows that do not count.
    """
    if software is None:
        return None  # and no row is read
    models: defaultdict[object, list[float]] = defaultdict(list)
    for row, difference in _differences().get((software, kind), ()):
        if _in_fp8(row.training) == _in_fp8(training) and not (but and but(row)):
            models[row.training.architecture].append(difference)
    return math.fsum(map(mean, models.values())) / (len(models) + _SHRINKAGE) if models else None


@cache
def _differences() -> Mapping[tuple[str, str], list[tuple[PublishedRow, float]]]:
    """Log published / modelled throughput of each row, by software and kind."""
    found: defaultdict[tuple[str, str], list[tuple[PublishedRow, float]]] = defaultdict(list)
    for key, entry in fitted()["calibrations"].items():
        for row in elsewhere(key):
            if row.config in entry["elsewhere"] and not is_fitted(row.stack, key):
                error = Errors(*entry["elsewhere"][row.config]).source
                found[row.stack, kind_of(row)].append((row, -math.log1p(error)))
    return found


@cache
def _known(key: str) -> Mapping[str, frozenset[str]]:
    """The software of a calibration's rows, each with its repositories."""
    found = defaultdict(set)
    for row in (*rows_of(key), *elsewhere(key)):
        found[row.stack].add(_repository(row))
    return {stack: frozenset(repositories - {""}) for stack, repositories in found.items()}


def _repository(row: PublishedRow) -> str:
    """As ``pytorch/torchtitan``; empty where the source begins with none."""
    first = row.source.partition(" ")[0].partition("@")[0].lower().removeprefix("https://")
    parts = first.removeprefix("github.com/").split("/")
    return "/".join(parts[:2]) if len(parts) > 1 else ""


def _words(text: str) -> set[str]:
    return set("".join(sign if sign.isalnum() or sign == "-" else " " for sign in text.lower()).split())


def _in_fp8(training: Training) -> bool:
    return training.matmul_dtype == "fp8"
