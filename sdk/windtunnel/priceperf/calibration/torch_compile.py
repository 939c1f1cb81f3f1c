"""How much faster a GPU trains with torch.compile: runs that were published or measured with it and without it.

Each trained model gives one log ratio of throughputs, the mean over its runs. The mean of these is expected of the next
model. It is not shrunk towards 0, because the one large survey found more: on an A100, 163 models trained 1.43 times as
fast on average, 1.21 times in fp32 and 1.51 times in AMP (pytorch.org/get-started/pytorch-2.0). It is a check: its mean
sets nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import NamedTuple

from ..instances import InstanceType
from ..model.described_step import training_step
from ..model.engines import Constants
from ..model.intervals import group_quantile
from ..model.training_settings import Training
from .left_out import fitted
from .published_rows import compiled_and_not


class Pair(NamedTuple):
    """The same run with torch.compile and without it. ``gain``: log of the ratio of their throughputs."""

    model: Hashable
    gain: float


def pairs() -> list[Pair]:
    """All pairs."""
    return [
        Pair(compiled.training.architecture, math.log(plain.step_s / compiled.step_s))
        for compiled, plain in compiled_and_not()
    ]


def gain_and_width(known: Sequence[Pair]) -> tuple[float, float]:
    """The gain (log) that is expected of the next model, and the log half-width of its interval."""
    by_model: defaultdict[Hashable, list[float]] = defaultdict(list)
    for pair in known:
        by_model[pair.model].append(pair.gain)
    gain = mean(map(mean, by_model.values()))
    return gain, group_quantile([[abs(each - gain) for each in gains] for gains in by_model.values()])


def inside(known: Sequence[Pair]) -> list[bool]:
    """Whether each pair lies in the interval of the other models."""
    found = []
    for pair in known:
        gain, width = gain_and_width([each for each in known if each.model != pair.model])
        found.append(abs(pair.gain - gain) <= width)
    return found


def summary() -> Mapping[str, float]:
    """The gain, and what it comes from, for `fitted.json`."""
    known = pairs()
    return {
        "gain": round(gain_and_width(known)[0], 4),
        "pairs": len(known),
        "models": len({pair.model for pair in known}),
        "inside": round(mean(inside(known)), 4),
    }


def log_gain() -> float:
    """The expected gain of a script on a GPU."""
    found: float = fitted()["torch_compile"]["gain"]
    return found


def speed_of_compiled(
    speed: float, training: Training, instance: InstanceType, constants: Constants, count: int
) -> float:
    """Real over modelled throughput of a compiled script that is described: at most that of tuned software.

    Five of the six measured runs are slower than that. ``speed``: with the whole gain; ``training``: of a plain script.
    """
    plain, tuned = (
        training_step(each, instance, constants, count).total_s
        for each in (training, replace(training, plain=False))
    )
    return min(speed, max(speed * math.exp(-log_gain()), plain / tuned))
