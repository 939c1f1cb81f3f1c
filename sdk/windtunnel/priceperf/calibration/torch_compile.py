"""How much faster a GPU trains with torch.compile: runs that were published or measured with it and without it.

Each trained model gives one log ratio of throughputs, as of plain scripts (`measured_scripts`). The mean is not shrunk
towards 0, because the one large survey found more: on an A100, 163 models trained 1.43 times as fast on average, 1.21
times in fp32 and 1.51 times in AMP (pytorch.org/get-started/pytorch-2.0). It is a check: its mean sets nothing.
"""

from __future__ import annotations

import math

from .left_out import fitted
from .measured_scripts import Script
from .published_rows import compiled_and_not

SHRINKAGE = 0.0
"""Of the mean: see above. The argument of functions of `measured_scripts`."""


def pairs() -> list[Script]:
    """The compiled runs, each with the log of its throughput over that of the same run without torch.compile."""
    return [
        Script(compiled.training.architecture, compiled.config, math.log(plain.step_s / compiled.step_s))
        for compiled, plain in compiled_and_not()
    ]


def log_gain() -> float:
    """The expected log ratio for a script on a GPU."""
    found: float = fitted()["torch_compile"]["log_speed"]
    return found


def capped(speed: float, tuned: float) -> float:
    """The speed of a compiled script that is described: at most that of tuned software, as of five of the six measured
    runs. ``speed``: with the whole gain; both relative to the modelled plain script.
    """
    return min(speed, max(speed * math.exp(-log_gain()), tuned))
