"""Errors of rows that set nothing, and the widths of intervals that follow from them.

A row is predicted three times by constants that never saw it: without its near-twins (the same model trained by
the same software), without its family of models, and without its source (all that the same software trained).
What a job has in common with the calibration decides which of the three it is like: a stranger is like a row
whose source was left out. Of those there are more: rows of software that no constant was fitted to
(`published_rows.elsewhere`).

The width that judges a row is set by other groups only. It is the conformal quantile for a new group
(hierarchical conformal prediction: each group weighs the same however many rows it has, and the group to come
weighs as much as one), of errors as parts of what is usual of their kind. Models that are split by tensor or pipeline
parallelism err more than others, so usual is told of the two apart. Rows of which recomputation, attention or network
had to be assumed set none. Groups of all calibrations count: the form of the model is one, and few groups make no
quantile.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from statistics import mean
from typing import Any, Literal, NamedTuple, TypeVar

from ..instances import instance_type
from ..model.intervals import group_quantile
from ..model.training_settings import Training
from .published_rows import elsewhere, is_fitted, rows_of
from .row_reader import PublishedRow

Level = Literal["alone", "family", "source", "software"]
"""What leaves together with a row: its near-twins, its family of models, its source. ``software``: its source, but
what other models by that software tell of its speed is known (`software.log_speed`)."""
LEVELS: tuple[Level, ...] = ("alone", "family", "source")
"""Those with errors of every row; see `Errors`."""
_Name = TypeVar("_Name")
_SHRINKAGE = 3.0
"""A usual error counts as many groups of the average of all rows beside its own."""


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
    key = instance_type(row.instance_type).calibration or ""
    names = {"alone": f"{row.stack}: {row.training.architecture}", "family": row.family}
    return Group(key, names.get(level, row.stack))


def levels_of(row: PublishedRow) -> tuple[Level, ...]:
    """At which levels a row that sets no constant is one of those left out.

    By software that other rows are fitted to it is like a model of another family, whose width it takes no part in;
    by any other like a new source. Near-twins are of one table.
    """
    return ("family", "source") if is_fitted(row.stack, row.calibration) else ("source",)


def kind_of(row: PublishedRow) -> str:
    """Rows whose errors are told together: a calibration's, and of A100s one node apart from many."""
    return kind_of_run(instance_type(row.instance_type).calibration or "", row.nodes)


def kind_of_run(calibration: str, nodes: int) -> str:
    """`kind_of` by its parts."""
    return f"{calibration}_cluster" if calibration == "a100" and nodes > 1 else calibration


class Like(NamedTuple):
    """What decides how large an error is usual. ``split``: by tensor or pipeline parallelism."""

    kind: str
    split: bool

    @classmethod
    def of(cls, kind: str, training: Training) -> Like:
        """Of a row of that kind, or of what is modelled."""
        return cls(kind, training.workers != training.data_parallel)


@cache
def fitted() -> Mapping[str, Any]:
    """What `scripts/fit_calibrations.py` has written into `fitted.json`."""
    found: dict[str, Any] = json.loads(files(__package__).joinpath("fitted.json").read_text(encoding="utf-8"))
    return found


def width(level: Level, like: Like, but: Group | None = None) -> float:
    """Log half-width of the interval of such a row at that level. ``but``: a group that takes no part in it."""
    if but is not None:
        return measured_width(level, like, but)
    found: float = fitted()["widths"][level][like.kind][like.split]
    return found


@cache
def measured_width(level: Level, like: Like, but: Group | None) -> float:
    """`width`, from the rows; what ``fitted.json`` holds of it is for those who need no row."""
    groups = {(its, group): scores for (its, group), scores in _scores(level).items() if group != but}
    usual = _usual(groups)
    parts = [[score / usual(its) for score in scores] for (its, _), scores in groups.items()]
    return group_quantile(parts) * usual(like)


def _usual(groups: Mapping[tuple[Like, Group], list[float]]) -> Callable[[Like], float]:
    """The usual error: that of split models or others, times what a kind has more or less than that."""
    means = [(its, mean(scores)) for (its, _), scores in groups.items()]
    of_all = mean(error for _, error in means)
    of_split = _drawn([(its.split, error) for its, error in means], of_all)
    of_kind = _drawn([(its.kind, error / of_split[its.split]) for its, error in means], 1.0)
    return lambda like: of_kind[like.kind] * of_split[like.split]


def _drawn(values: Sequence[tuple[_Name, float]], towards: float) -> Mapping[_Name, float]:
    """The mean by name, drawn ``towards`` what it would be without a name."""
    result: defaultdict[_Name, float] = defaultdict(lambda: towards)
    for name in {name for name, _ in values}:
        own = [value for its, value in values if its == name]
        result[name] = (_SHRINKAGE * towards + math.fsum(own)) / (_SHRINKAGE + len(own))
    return result


@cache
def _scores(level: Level) -> Mapping[tuple[Like, Group], list[float]]:
    found: defaultdict[tuple[Like, Group], list[float]] = defaultdict(list)
    for key, entry in fitted()["calibrations"].items():
        errors = entry["by_software"]
        if level != "software":
            every = {**entry["errors"], **entry["elsewhere"]}
            errors = {config: getattr(Errors(*each), level) for config, each in every.items()}
        others = elsewhere(key) if level in ("source", "software") else ()
        for row in (*rows_of(key), *others):
            if row.config in errors and not row.lacks:
                its = Like.of(kind_of(row), row.training)
                found[its, group_of(row, level)].append(abs(math.log1p(errors[row.config])))
    return found


def forget() -> None:
    """Read `fitted.json` again: it was written anew."""
    for function in (fitted, measured_width, _scores):
        function.cache_clear()
