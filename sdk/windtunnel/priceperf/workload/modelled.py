"""What the model says of one way to run a job."""

from __future__ import annotations

from typing import NamedTuple

from ..model.fixed_costs import FixedCost
from ..model.intervals import RangeCheck
from ..model.step_time import StepTime
from ..model.training_settings import Training


class Modelled(NamedTuple):
    """Its parts, each made once from the same split of the job."""

    training: Training | None
    """The step as a description, split over the cluster; None: only counts are known."""
    step: StepTime
    """The optimizer step."""
    evaluation_step: StepTime | None
    """One forward pass over the batch; None: the job does not evaluate."""
    range_check: RangeCheck
    """How far from the calibration's rows it lies, and the interval that follows."""
    compilation: FixedCost
    """The compiler's time before the first step."""
    software_speed: float | None = None
    """Times the modelled throughput that the job's software reaches, and ``step`` has; None: not named, not known, or
    constants hold it."""
