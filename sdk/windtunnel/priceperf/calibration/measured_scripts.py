"""How far the plain scripts that the project measured lie from the model (`model.plain_script`).

Each model that was trained tells one difference, in all its precisions, batches and loops. Their mean, drawn to no
difference, is expected of the next model; the interval around it is as wide as the quantile of the others' errors.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from statistics import mean, median
from typing import Literal, NamedTuple

from ..instances import InstanceType
from ..model.described_step import training_step
from ..model.engines import Constants
from ..model.intervals import group_quantile
from .left_out import SHRINKAGE, fitted, kind_of, kind_of_run
from .published_rows import measured

Known = Literal["scripts", "rehearsed", "others"]
"""What a plain script is predicted from: its description (of transformers), or counts alone, of a transformer or of
other models."""
OTHERS_MEASURED_ON = "h100"


class Script(NamedTuple):
    """One run. ``difference``: log of the measured throughput beside the modelled one. ``host``: log width that its
    interval has for the speed of its host alone.
    """

    model: Hashable
    name: str
    difference: float
    host: float = 0.0

    def apart(self, speed: float) -> float:
        """How far it lies from what is expected, beyond what its host's speed may do."""
        return math.sqrt(max(0.0, (self.difference - speed) ** 2 - self.host**2))


class Judged(NamedTuple):
    """A run predicted from other models' runs alone: the relative error, and whether their interval holds it."""

    script: Script
    error: float
    inside: bool


def log_speed_of_scripts(kind: str, of: Known = "scripts") -> float | None:
    """Log of the throughput beside the modelled one; None: no script was measured on that kind (`kind_of_run`)."""
    known = errors_of_scripts(kind, of)
    return None if known is None else known["log_speed"]


def speed_of_script(instance: InstanceType, count: int, of: Known = "scripts") -> float:
    """Times the modelled throughput that a plain script reaches on ``count`` instances: on a NeuronCore, where the
    published scripts are such, and where nobody measured one, 1. Convolutions and the like are as much slower on each
    kind of GPU as on the one that was measured.
    """
    others = of == "others" and not instance.is_neuron
    kind = OTHERS_MEASURED_ON if others else kind_of_run(instance.calibration or "", count)
    return math.exp(log_speed_of_scripts(kind, of) or 0.0)


def errors_of_scripts(kind: str, of: Known = "scripts") -> Mapping[str, float] | None:
    """`summary` of the scripts of that kind, as the fit wrote it."""
    found: Mapping[str, float] | None = fitted()[of].get(kind)
    return found


def scripts(constants: Mapping[str, Constants]) -> dict[str, list[Script]]:
    """By kind. ``constants``: by calibration."""
    found: defaultdict[str, list[Script]] = defaultdict(list)
    for row in measured():
        modelled_s = training_step(row.training, row.instance, constants[row.calibration], row.nodes).total_s
        difference = math.log(modelled_s / row.step_s)
        found[kind_of(row)].append(Script(row.training.architecture, row.config, difference))
    return dict(found)


def speed_and_width(known: list[Script]) -> tuple[float, float]:
    """Log of the speed that is expected of another model, and the log half-width of its interval."""
    groups = by_model(known)
    speed = math.fsum(mean(each.difference for each in its) for its in groups) / (SHRINKAGE + len(groups))
    return speed, width_around(speed, known)


def width_around(speed: float, known: Iterable[Script]) -> float:
    """Log half-width that the interval of another model has beside what its host's speed adds."""
    return group_quantile([[each.apart(speed) for each in its] for its in by_model(known)])


def by_model(known: Iterable[Script]) -> list[list[Script]]:
    """Those of each model."""
    found: defaultdict[Hashable, list[Script]] = defaultdict(list)
    for script in known:
        found[script.model].append(script)
    return list(found.values())


def summary(known: list[Script]) -> dict[str, float]:
    """How right the model is about them, each model of them left out, and the speed that is expected of another."""
    found = judged(known)
    errors = [abs(each.error) for each in found]
    return {
        "log_speed": round(speed_and_width(known)[0], 4),
        "rows": len(known),
        "models": len({script.model for script in known}),
        "mean_error": round(mean(errors), 4),
        "median_error": round(median(errors), 4),
        "max_error": round(max(errors), 4),
        "inside": round(mean(each.inside for each in found), 4),
    }


def judged(known: list[Script]) -> list[Judged]:
    """Each run by the scripts that trained another model."""
    found = []
    for script in known:
        speed, width = speed_and_width([each for each in known if each.model != script.model])
        found.append(judge(script, speed, width))
    return found


def judge(script: Script, speed: float, width: float) -> Judged:
    """One run, beside what was expected of it."""
    return Judged(script, math.expm1(speed - script.difference), script.apart(speed) <= width)
