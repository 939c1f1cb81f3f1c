"""How far the plain scripts that the project measured lie from the model (`model.plain_script`).

Each model that was trained tells one difference, in all its precisions, batches and loops. Their mean, drawn to no
difference, is expected of the next model; the interval around it is as wide as the quantile of the others' errors.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from statistics import mean, median
from typing import NamedTuple

from ..instances import InstanceType
from ..model.described_step import training_step
from ..model.engines import Constants
from ..model.intervals import group_quantile
from .left_out import SHRINKAGE, fitted, kind_of, kind_of_run
from .published_rows import measured
from .row_reader import PublishedRow


class Script(NamedTuple):
    """One row. ``difference``: log of the measured throughput beside the modelled one."""

    row: PublishedRow
    difference: float


class Judged(NamedTuple):
    """A row predicted from other models' rows alone: the relative error, and whether their interval holds it."""

    row: PublishedRow
    error: float
    inside: bool


def log_speed_of_scripts(kind: str) -> float | None:
    """Log of the throughput beside the modelled one; None: no script was measured on that kind (`kind_of_run`)."""
    known = errors_of_scripts(kind)
    return None if known is None else known["log_speed"]


def speed_of_script(instance: InstanceType, count: int) -> float:
    """Times the modelled throughput that a plain script reaches on ``count`` instances: on a NeuronCore, where the
    published scripts are such, and where nobody measured one, 1.
    """
    return math.exp(log_speed_of_scripts(kind_of_run(instance.calibration or "", count)) or 0.0)


def errors_of_scripts(kind: str) -> Mapping[str, float] | None:
    """`summary` of the scripts of that kind, as the fit wrote it."""
    found: Mapping[str, float] | None = fitted()["scripts"].get(kind)
    return found


def scripts(constants: Mapping[str, Constants]) -> dict[str, list[Script]]:
    """By kind. ``constants``: by calibration."""
    found: defaultdict[str, list[Script]] = defaultdict(list)
    for row in measured():
        modelled_s = training_step(row.training, row.instance, constants[row.calibration], row.nodes).total_s
        found[kind_of(row)].append(Script(row, math.log(modelled_s / row.step_s)))
    return dict(found)


def speed_and_width(known: list[Script]) -> tuple[float, float]:
    """Log of the speed that is expected of another model, and the log half-width of its interval."""
    by_model: defaultdict[object, list[float]] = defaultdict(list)
    for script in known:
        by_model[script.row.training.architecture].append(script.difference)
    speed = math.fsum(map(mean, by_model.values())) / (SHRINKAGE + len(by_model))
    return speed, group_quantile([[abs(each - speed) for each in its] for its in by_model.values()])


def summary(known: list[Script]) -> dict[str, float]:
    """How right the model is about them, each model of them left out, and the speed that is expected of another."""
    found = judged(known)
    errors = [abs(each.error) for each in found]
    return {
        "log_speed": round(speed_and_width(known)[0], 4),
        "rows": len(known),
        "models": len({script.row.training.architecture for script in known}),
        "mean_error": round(mean(errors), 4),
        "median_error": round(median(errors), 4),
        "max_error": round(max(errors), 4),
        "inside": round(mean(each.inside for each in found), 4),
    }


def judged(known: list[Script]) -> list[Judged]:
    """Each row by the scripts that trained another model."""
    found = []
    for row, difference in known:
        model = row.training.architecture
        speed, width = speed_and_width([each for each in known if each.row.training.architecture != model])
        found.append(Judged(row, math.expm1(speed - difference), abs(difference - speed) <= width))
    return found
