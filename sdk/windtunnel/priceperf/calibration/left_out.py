"""Errors of rows that were left out of a fit, and the widths of intervals that follow from them.

Each row is predicted three times by constants that were fitted without it: without its near-twins (the same model,
trained by the same software), without its family of models, and without its source (all rows of the same software).
What a job has in common with the calibration decides which of the three cases it is like. A job by unknown software
("stranger") is like a row whose source was left out. More rows are of this case: those of software to which no constant
is fitted (`published_rows.elsewhere`).

The width for a row comes from the other groups of rows only. It is the conformal quantile for a new group
(hierarchical conformal prediction: each group has the same weight, whatever its number of rows, and the new group
counts as one more). Errors are divided by the usual error of their kind before. Software to which no constant is fitted
is predicted with the usual speed of such software (`log_speed_of_stranger`). Rows whose recomputation, attention or
network had to be assumed are not used. The groups of all calibrations are used together, because all have the same
model, and a quantile needs many groups.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from statistics import mean
from typing import Any, Literal, NamedTuple

from ..model.intervals import group_quantile
from .data_files import text_of
from .published_rows import elsewhere, is_fitted, rows_of
from .row_reader import PublishedRow

Level = Literal["alone", "family", "source", "software", "script", "rehearsed"]
"""What is left out of a fit together with a row. ``alone``: its near-twins; ``family``: its family of models;
``source``: its source; ``software``: its source, but its software's speed is known from other models
(`software.log_speed`). ``script``: no fit, but measured plain scripts (`measured_scripts`); ``rehearsed``: the same,
predicted from counts (`workload.rehearsed_scripts`)."""
LEVELS: tuple[Level, ...] = ("alone", "family", "source")
"""The levels at which every fitted row has an error; see `LeftOutErrors`."""
SHRINKAGE = 3.0
"""The usual error of a kind is the mean of its own groups and this many groups with the overall error. Speeds are
averaged with as many zeros."""
_TELLING = 3
"""The least number of software with rows from which the usual speed of other software is computed."""


class LeftOutErrors(NamedTuple):
    """Relative errors of one row's throughput, one for each level."""

    alone: float
    family: float
    source: float


class Group(NamedTuple):
    """Rows that are left out together. ``name`` is unique in its calibration and level."""

    calibration: str
    name: str


def group_of(row: PublishedRow, level: Level) -> Group:
    """The group of rows with which a row is left out."""
    names = {"alone": f"{row.stack}: {row.training.architecture}", "family": row.family}
    return Group(row.calibration, names.get(level, row.stack))


def levels_of(row: PublishedRow) -> tuple[Level, ...]:
    """The levels at which a row to which no constant is fitted counts as left out.

    If the constants are fitted to other rows of its software, it is like a model of another family (but the width of
    that level does not use it); otherwise like a new source. It has no near-twins, which are rows of one table.
    """
    return ("family", "source") if is_fitted(row.stack, row.calibration) else ("source",)


def kind_of(row: PublishedRow) -> str:
    """The kind of a row, by which errors are summed: its calibration, but many A100 nodes are a kind of their own."""
    return kind_of_run(row.calibration, row.nodes)


def kind_of_run(calibration: str, nodes: int) -> str:
    """`kind_of` for a calibration and a number of nodes."""
    return f"{calibration}_cluster" if calibration == "a100" and nodes > 1 else calibration


@cache
def fitted() -> Mapping[str, Any]:
    """The content of `fitted.json`, which `scripts/fit_calibrations.py` writes."""
    found: dict[str, Any] = json.loads(text_of("fitted.json"))
    return found


@cache
def strangers() -> Mapping[tuple[str, str], list[tuple[PublishedRow, float]]]:
    """Rows of software to which no constant is fitted, by software and kind, each with the log of its published /
    modelled throughput.
    """
    found: defaultdict[tuple[str, str], list[tuple[PublishedRow, float]]] = defaultdict(list)
    for key, entry in fitted()["calibrations"].items():
        for row in elsewhere(key):
            if row.config in entry["elsewhere"] and not is_fitted(row.stack, key):
                error = LeftOutErrors(*entry["elsewhere"][row.config]).source
                found[row.stack, kind_of(row)].append((row, -math.log1p(error)))
    return found


@cache
def log_speed_of_stranger(kind: str, *but: str) -> float:
    """Log of the usual ratio of published and modelled throughput, for software to which no constant is fitted.

    It is the mean of all such software, each with weight 1, shrunk towards 0; it is 0 if too few have rows. ``but``:
    software that is left out.
    """
    means = [
        mean(difference for _, difference in rows)
        for (software, its), rows in strangers().items()
        if its == kind and software not in but
    ]
    return math.fsum(means) / (SHRINKAGE + len(means)) if len(means) >= _TELLING else 0.0


def log_error_as_stranger(row: PublishedRow, error: float, but: str = "") -> float:
    """Log of 1 + ``error`` of a row to which no constant is fitted, if it is predicted with the usual speed of such
    software. The row's own software and ``but`` are left out of that speed.
    """
    strange = not is_fitted(row.stack, row.calibration)
    return math.log1p(error) + (log_speed_of_stranger(kind_of(row), row.stack, but) if strange else 0.0)


def width(level: Level, kind: str, but: Group | None = None) -> float:
    """Log half-width of the interval at a level, for rows of a kind. ``but``: a group that is left out; plain scripts
    are in no group.
    """
    if but is not None and level not in ("script", "rehearsed"):
        return measured_width(level, kind, but)
    found: float = fitted()["widths"][level][kind]
    return found


@cache
def measured_width(level: Level, kind: str, but: Group | None) -> float:
    """`width`, computed from the rows. ``fitted.json`` has the results, so that most callers need not read the rows."""
    found = _scores(level, but.name if but is not None and level == "source" else "")
    groups = {(its, group): scores for (its, group), scores in found.items() if group != but}
    usual = _usual(groups)
    parts = [[score / usual(its) for score in scores] for (its, _), scores in groups.items()]
    return group_quantile(parts) * usual(kind)


def _usual(groups: Mapping[tuple[str, Group], list[float]]) -> Callable[[str], float]:
    """A function that gives the usual error of a kind, shrunk towards that of all kinds."""
    means = [(its, mean(scores)) for (its, _), scores in groups.items()]
    of_all = mean(error for _, error in means)

    def of_kind(kind: str) -> float:
        own = [error for its, error in means if its == kind]
        return (SHRINKAGE * of_all + math.fsum(own)) / (SHRINKAGE + len(own))

    return of_kind


@cache
def _scores(level: Level, but: str) -> Mapping[tuple[str, Group], list[float]]:
    """Absolute log errors of left-out rows, by kind and group. ``but``: software left out of the usual speed."""
    found: defaultdict[tuple[str, Group], list[float]] = defaultdict(list)
    for row, error in log_errors(level, but):
        found[kind_of(row), group_of(row, level)].append(abs(error))
    return found


def log_errors(level: Level, but: str = "") -> Iterator[tuple[PublishedRow, float]]:
    """Left-out rows in which nothing had to be assumed, each with its log error at a level. ``but``: see `_scores`."""
    for key, entry in fitted()["calibrations"].items():
        errors = entry["by_software"]
        if level != "software":
            every = {**entry["errors"], **entry["elsewhere"]}
            errors = {config: getattr(LeftOutErrors(*each), level) for config, each in every.items()}
        others = elsewhere(key) if level in ("source", "software") else ()
        for row in (*rows_of(key), *others):
            if row.config in errors and not row.lacks:
                error = math.log1p(errors[row.config])
                if level == "source" and row.config in entry["elsewhere"]:
                    error = log_error_as_stranger(row, errors[row.config], but)
                yield row, error


def forget() -> None:
    """Clear the caches, so that a new `fitted.json` is read."""
    for function in (fitted, strangers, log_speed_of_stranger, measured_width, _scores):
        function.cache_clear()
