"""The result of the model for one way to run a job."""

from __future__ import annotations

from typing import NamedTuple

from ..model.fixed_costs import FixedCost
from ..model.intervals import RangeCheck
from ..model.step_time import StepTime
from ..model.training_settings import Training


class Modelled(NamedTuple):
    """The modelled parts of one run, all made from the same split of the job."""

    training: Training | None
    """The step as a description, split over the cluster; None: only counts are known."""
    step: StepTime
    """The optimizer step."""
    evaluation_step: StepTime | None
    """One forward pass over the batch; None: the job does not evaluate."""
    range_check: RangeCheck
    """How far the job lies from the calibration's rows, and the interval that follows."""
    compilation: FixedCost
    """The compiler's time before the first step."""
    software_speed: float | None = None
    """Real over modelled throughput of the job's software, already in ``step``. None: no software is named, its speed
    is not known, or constants are fitted to it."""
