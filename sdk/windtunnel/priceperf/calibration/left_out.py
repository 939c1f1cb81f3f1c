"""Errors of rows that set nothing, and the widths of intervals that follow from them.

A row is predicted three times by constants that never saw it: without its near-twins (the same model trained by
the same software), without its family of models, and without its source (all that the same software trained).
What a job has in common with the calibration decides which of the three it is like: a stranger is like a row
whose source was left out. Of those there are more: rows of software that no constant was fitted to
(`published_rows.elsewhere`).

The width that judges a row is set by other groups only. It is the conformal quantile for a new group
(hierarchical conformal prediction: each group weighs the same however many rows it has, and the group to come
weighs as much as one), of errors as parts of what is usual of their kind. Software that no constant is fitted to is
predicted with the speed that is usual of such software (`log_speed_of_stranger`). Rows of which recomputation,
attention or network had to be assumed set none. Groups of all calibrations count: the form of the model is one, and
few groups make no quantile.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from statistics import mean
from typing import Any, Literal, NamedTuple

from ..model.intervals import group_quantile
from .data_files import text_of
from .published_rows import elsewhere, is_fitted, rows_of
from .row_reader import PublishedRow

Level = Literal["alone", "family", "source", "software", "script", "rehearsed"]
"""What leaves together with a row: its near-twins, its family of models, its source. ``software``: its source, but
what other models by that software tell of its speed is known (`software.log_speed`). ``script``: a plain script, see
`measured_scripts`; ``rehearsed``: known from its counts alone, see `workload.rehearsed_scripts`."""
LEVELS: tuple[Level, ...] = ("alone", "family", "source")
"""Those with errors of every row; see `Errors`."""
SHRINKAGE = 3.0
"""What is usual of a kind, error or speed, counts so many groups of what is usual of all beside its own."""
_TELLING = 3
"""Fewer kinds of software say nothing of the speed of another."""


class Errors(NamedTuple):
    """Relative errors of one row's throughput, one a level."""

    alone: float
    family: float
    source: float


class Group(NamedTuple):
    """Rows that leave together. ``name`` is unique in its calibration and level."""

    calibration: str
    name: str


def group_of(row: PublishedRow, level: Level) -> Group:
    """With whom a row leaves."""
    names = {"alone": f"{row.stack}: {row.training.architecture}", "family": row.family}
    return Group(row.calibration, names.get(level, row.stack))


def levels_of(row: PublishedRow) -> tuple[Level, ...]:
    """At which levels a row that sets no constant is one of those left out.

    By software that other rows are fitted to it is like a model of another family, whose width it takes no part in;
    by any other like a new source. Near-twins are of one table.
    """
    return ("family", "source") if is_fitted(row.stack, row.calibration) else ("source",)


def kind_of(row: PublishedRow) -> str:
    """Rows whose errors are told together: a calibration's, and of A100s one node apart from many."""
    return kind_of_run(row.calibration, row.nodes)


def kind_of_run(calibration: str, nodes: int) -> str:
    """`kind_of` by its parts."""
    return f"{calibration}_cluster" if calibration == "a100" and nodes > 1 else calibration


@cache
def fitted() -> Mapping[str, Any]:
    """What `scripts/fit_calibrations.py` has written into `fitted.json`."""
    found: dict[str, Any] = json.loads(text_of("fitted.json"))
    return found


@cache
def strangers() -> Mapping[tuple[str, str], list[tuple[PublishedRow, float]]]:
    """Rows of software that no constant is fitted to, by software and kind, each with the log of its published /
    modelled throughput.
    """
    found: defaultdict[tuple[str, str], list[tuple[PublishedRow, float]]] = defaultdict(list)
    for key, entry in fitted()["calibrations"].items():
        for row in elsewhere(key):
            if row.config in entry["elsewhere"] and not is_fitted(row.stack, key):
                error = Errors(*entry["elsewhere"][row.config]).source
                found[row.stack, kind_of(row)].append((row, -math.log1p(error)))
    return found


@cache
def log_speed_of_stranger(kind: str, *but: str) -> float:
    """Log of the throughput beside the modelled one that is usual of software that no constant is fitted to.

    The mean of all such software, each weighing one, drawn to no difference; none where too few tell. ``but``:
    software that does not count.
    """
    means = [
        mean(difference for _, difference in rows)
        for (software, its), rows in strangers().items()
        if its == kind and software not in but
    ]
    return math.fsum(means) / (SHRINKAGE + len(means)) if len(means) >= _TELLING else 0.0


def log_error_as_stranger(row: PublishedRow, error: float, but: str = "") -> float:
    """Log of 1 + the ``error`` of a row that sets no constant, with the speed that other such software has, and not
    that of ``but``.
    """
    strange = not is_fitted(row.stack, row.calibration)
    return math.log1p(error) + (log_speed_of_stranger(kind_of(row), row.stack, but) if strange else 0.0)


def width(level: Level, kind: str, but: Group | None = None) -> float:
    """Log half-width of the interval of such a row at that level. ``but``: a group that takes no part in it; plain
    scripts are in none.
    """
    if but is not None and level not in ("script", "rehearsed"):
        return measured_width(level, kind, but)
    found: float = fitted()["widths"][level][kind]
    return found


@cache
def measured_width(level: Level, kind: str, but: Group | None) -> float:
    """`width`, from the rows; what ``fitted.json`` holds of it is for those who need no row."""
    found = _scores(level, but.name if but is not None and level == "source" else "")
    groups = {(its, group): scores for (its, group), scores in found.items() if group != but}
    usual = _usual(groups)
    parts = [[score / usual(its) for score in scores] for (its, _), scores in groups.items()]
    return group_quantile(parts) * usual(kind)


def _usual(groups: Mapping[tuple[str, Group], list[float]]) -> Callable[[str], float]:
    """The usual error of a kind, drawn to that of all."""
    means = [(its, mean(scores)) for (its, _), scores in groups.items()]
    of_all = mean(error for _, error in means)

    def of_kind(kind: str) -> float:
        own = [error for its, error in means if its == kind]
        return (SHRINKAGE * of_all + math.fsum(own)) / (SHRINKAGE + len(own))

    return of_kind


@cache
def _scores(level: Level, but: str) -> Mapping[tuple[str, Group], list[float]]:
    """``but``: software that says nothing of the speed of others."""
    found: defaultdict[tuple[str, Group], list[float]] = defaultdict(list)
    for key, entry in fitted()["calibrations"].items():
        errors = entry["by_software"]
        if level != "software":
            every = {**entry["errors"], **entry["elsewhere"]}
            errors = {config: getattr(Errors(*each), level) for config, each in every.items()}
        others = elsewhere(key) if level in ("source", "software") else ()
        for row in (*rows_of(key), *others):
            if row.config in errors and not row.lacks:
                error = math.log1p(errors[row.config])
                if level == "source" and row.config in entry["elsewhere"]:
                    error = log_error_as_stranger(row, errors[row.config], but)
                found[kind_of(row), group_of(row, level)].append(abs(error))
    return found


def forget() -> None:
    """Read `fitted.json` again: it was written anew."""
    for function in (fitted, strangers, log_speed_of_stranger, measured_width, _scores):
        function.cache_clear()
