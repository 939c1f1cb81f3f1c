"""The difference between measured plain scripts and the model (`model.plain_script`).

Each trained model gives one difference, the mean over its precisions, batches and loops. The mean of these, shrunk
towards 0, is expected of the next model; the width of its interval is the quantile of the other models' errors.
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
from ..model.plain_script import is_compiled
from .left_out import SHRINKAGE, fitted, kind_of, kind_of_run
from .published_rows import measured

Known = Literal["scripts", "rehearsed", "others"]
"""What a plain script is predicted from. ``scripts``: the description of a transformer; ``rehearsed``: counts of a
transformer; ``others``: counts of another model."""
OTHERS_MEASURED_ON = "h100"


class Script(NamedTuple):
    """One run. ``difference``: log of its measured throughput over the modelled one. ``host``: log width of its
    interval that comes from the speed of its host alone.
    """

    model: Hashable
    name: str
    difference: float
    host: float = 0.0

    def apart(self, speed: float) -> float:
        """Distance from the expected ``speed`` (log), less what the host's speed can explain."""
        return math.sqrt(max(0.0, (self.difference - speed) ** 2 - self.host**2))


class Judged(NamedTuple):
    """A run predicted from the runs of other models: its relative error, and whether it lies inside their interval."""

    script: Script
    error: float
    inside: bool


def log_speed_of_scripts(kind: str, of: Known = "scripts") -> float | None:
    """Log of a plain script's throughput over the modelled one; None: none was measured of that `kind_of_run`."""
    known = errors_of_scripts(kind, of)
    return None if known is None else known["log_speed"]


def speed_of_script(instance: InstanceType, count: int, of: Known = "scripts") -> float:
    """Real over modelled throughput of a plain script on ``count`` instances. It is 1 where none was measured, and on
    NeuronCores, whose published rows are such scripts. Models that are no transformers have the value of
    `OTHERS_MEASURED_ON` on every kind of GPU.
    """
    others = of == "others" and not instance.is_neuron
    kind = OTHERS_MEASURED_ON if others else kind_of_run(instance.calibration or "", count)
    return math.exp(log_speed_of_scripts(kind, of) or 0.0)


def errors_of_scripts(kind: str, of: Known = "scripts") -> Mapping[str, float] | None:
    """The `summary` of the scripts of a kind, from `fitted.json`; None: there are none."""
    found: Mapping[str, float] | None = fitted()[of].get(kind)
    return found


def scripts(constants: Mapping[str, Constants]) -> dict[str, list[Script]]:
    """The measured scripts of described models without torch.compile (`torch_compile` has that), by kind.

    ``constants``: by calibration.
    """
    found: defaultdict[str, list[Script]] = defaultdict(list)
    for row in measured():
        if is_compiled(row.stack):
            continue
        modelled_s = training_step(row.training, row.instance, constants[row.calibration], row.nodes).total_s
        difference = math.log(modelled_s / row.step_s)
        found[kind_of(row)].append(Script(row.training.architecture, row.config, difference))
    return dict(found)


def speed_and_width(known: Iterable[Script], shrinkage: float = SHRINKAGE) -> tuple[float, float]:
    """Log of the speed that is expected of the next model, and the log half-width of its interval, without the part
    that comes from its host's speed. ``shrinkage``: models without a difference that are counted in.
    """
    by_model: defaultdict[Hashable, list[Script]] = defaultdict(list)
    for script in known:
        by_model[script.model].append(script)
    means = [mean(each.difference for each in its) for its in by_model.values()]
    speed = math.fsum(means) / (shrinkage + len(means))
    return speed, group_quantile([[each.apart(speed) for each in its] for its in by_model.values()])


def summary(known: list[Script], shrinkage: float = SHRINKAGE) -> dict[str, float]:
    """The expected speed of the next model, and the errors of the scripts, each predicted without its own model."""
    found = judged(known, shrinkage)
    errors = [abs(each.error) for each in found]
    return {
        "log_speed": round(speed_and_width(known, shrinkage)[0], 4),
        "rows": len(known),
        "models": len({script.model for script in known}),
        "mean_error": round(mean(errors), 4),
        "median_error": round(median(errors), 4),
        "max_error": round(max(errors), 4),
        "inside": round(mean(each.inside for each in found), 4),
    }


def judged(known: list[Script], shrinkage: float = SHRINKAGE) -> list[Judged]:
    """Predict each run from the scripts of other models."""
    found = []
    for script in known:
        speed, width = speed_and_width([each for each in known if each.model != script.model], shrinkage)
        found.append(judge(script, speed, width))
    return found


def judge(script: Script, speed: float, width: float) -> Judged:
    """Compare one run with its expected speed and width (logs)."""
    return Judged(script, math.expm1(speed - script.difference), script.apart(speed) <= width)
