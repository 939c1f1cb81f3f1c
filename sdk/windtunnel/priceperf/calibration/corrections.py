"""A user's correction of the modelled step time, from jobs that ran on AWS: normal-normal shrinkage in logs.

One job gives y = log(real / modelled) for the modelled parts: training steps and evaluation. Assumed
fixed costs (set-up, compile, ...) are first subtracted from the real seconds, and are never corrected.

    y of a workload = m + e,   m ~ N(0, prior_sd^2),   e ~ N(0, job_sd^2 + fixed_sd^2)
    precision = 1 / prior_sd^2 + sum of 1 / (job_sd^2 + fixed_sd^2)
    log factor = sum of y / (job_sd^2 + fixed_sd^2) / precision
    interval of the next job: +- z sqrt(1 / precision + job_sd^2)

``m`` is what this user's jobs have in common, ``e`` how one of them differs from the others; z is 1.28, for
`intervals.COVERAGE`. Both deviations come from the calibration's own errors (`Calibration.log_slow`, ``log_fast``):

    total_sd = log_slow / z                      the model's uncertainty without any job
    job_sd   = min(log_fast, log_slow / sqrt 2) / z   spread of tuned benchmarks; at most half the variance
    prior_sd^2 = total_sd^2 - job_sd^2

If the sample standard deviation of this user's workloads is larger than ``job_sd``, it is used
instead: jobs that contradict each other must not give a narrow interval.

So a correction is always nearer to 1 than its jobs are, and if the jobs agree, its interval is never wider than
``log_slow``. Several runs of one workload count as one observation, their mean, because they share what is special
about that workload. That ``m`` and ``e`` are normal is an assumption.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from statistics import NormalDist, mean, stdev

from ..errors import InvalidInput
from ..instances import instance_type
from ..model.intervals import COVERAGE, RangeCheck
from ..model.step_time import StepTime
from .calibrations import CALIBRATIONS, Calibration, calibration_of

Z = NormalDist().inv_cdf((1 + COVERAGE) / 2)
"""Standard deviations to either side of the mean that include the part `COVERAGE`."""


@dataclass(frozen=True)
class Evidence:
    """One job that ran on AWS, with its modelled and real seconds on one instance.

    Args:
        job: its name.
        on: the day on which it started.
        instance_type: with ``ml.``.
        instance_count: number of instances.
        workload: text that identifies the workload, readable for users.
        model: `fingerprint` of the model that gave ``modelled_s``.
        modelled_s: seconds of training steps and evaluation, without any correction.
        real_s: seconds of the Training phase less the modelled fixed costs in it.
        real_low_s: the same with the high end of the fixed costs.
        real_high_s: the same with the low end of the fixed costs.

    Raises:
        InvalidInput: seconds that are not above 0, or not in order.
    """

    job: str
    on: date
    instance_type: str
    instance_count: int
    workload: str
    model: str
    modelled_s: float
    real_s: float
    real_low_s: float
    real_high_s: float

    def __post_init__(self) -> None:
        """Check the seconds, because logs are taken of them."""
        ends = (self.real_low_s, self.real_s, self.real_high_s)
        finite = all(math.isfinite(value) for value in (*ends, self.modelled_s))
        if not finite or not (self.modelled_s > 0 and 0 < ends[0] <= ends[1] <= ends[2]):
            raise InvalidInput(
                f"evidence of {self.job}: seconds must be above 0 and in order, not {self.modelled_s:g} "
                f"modelled and {ends[0]:g}, {ends[1]:g}, {ends[2]:g} real"
            )

    @property
    def calibration(self) -> Calibration:
        """The calibration of the instance.

        Raises:
            UnknownInstance: the instance type is unknown.
            NotCalibrated: it has no calibration.
        """
        return calibration_of(instance_type(self.instance_type))

    @property
    def ratio(self) -> float:
        """Real / modelled seconds."""
        return self.real_s / self.modelled_s

    @property
    def fixed_sd(self) -> float:
        """Log standard deviation of ``real_s`` that comes from the assumed fixed costs."""
        return math.log(self.real_high_s / self.real_low_s) / (2 * Z)


@dataclass(frozen=True)
class Correction:
    """The ``factor`` for a calibration's modelled step time. ``log_half_width``: of the next job's interval."""

    calibration: Calibration
    factor: float
    log_half_width: float
    evidence: tuple[Evidence, ...]

    @property
    def jobs(self) -> tuple[str, ...]:
        """Names of the jobs that the correction comes from."""
        return tuple(item.job for item in self.evidence)

    def step(self, time: StepTime) -> StepTime:
        """The step with every part of its time multiplied by the factor."""
        return time.times(self.factor)

    def check(self, check: RangeCheck, calibration: Calibration) -> RangeCheck:
        """The same check with this correction's interval, widened outside the calibrated range as ``check`` is."""
        widened = check.log_fast / calibration.log_fast
        width = self.log_half_width * widened
        return check._replace(log_fast=width, log_slow=width)


Corrections = Mapping[str, Correction]
"""Corrections by the key of their calibration."""


def job_sd(calibration: Calibration) -> float:
    """Log standard deviation between the workloads of one user."""
    return min(calibration.log_fast, calibration.log_slow / math.sqrt(2)) / Z


def prior_sd(calibration: Calibration) -> float:
    """Log standard deviation of what a user's jobs have in common."""
    return math.sqrt((calibration.log_slow / Z) ** 2 - job_sd(calibration) ** 2)


def correction(evidence: Sequence[Evidence], calibration: Calibration) -> Correction:
    """The correction of one calibration from one or more jobs, by the formula in the module's docstring.

    Raises:
        InvalidInput: no evidence, or evidence of another calibration.
    """
    if not evidence or any(item.calibration is not calibration for item in evidence):
        raise InvalidInput(f"a correction of {calibration.key} needs jobs that it models, not {evidence}")
    workloads: dict[str, list[Evidence]] = {}
    for item in evidence:
        workloads.setdefault(item.workload, []).append(item)
    logs = [mean(math.log(item.ratio) for item in runs) for runs in workloads.values()]
    scatter = max(job_sd(calibration), stdev(logs) if len(logs) > 1 else 0.0)
    precision = prior_sd(calibration) ** -2
    weighted = 0.0
    for log, runs in zip(logs, workloads.values(), strict=True):
        weight = 1 / (scatter**2 + mean(item.fixed_sd**2 for item in runs))
        precision += weight
        weighted += weight * log
    return Correction(
        calibration,
        math.exp(weighted / precision),
        Z * math.sqrt(1 / precision + scatter**2),
        tuple(evidence),
    )


def corrections(evidence: Iterable[Evidence]) -> dict[str, Correction]:
    """A correction for each calibration with jobs. Jobs that were compared with another model are left out."""
    found: dict[str, list[Evidence]] = {}
    for item in evidence:
        if is_current(item):
            found.setdefault(item.calibration.key, []).append(item)
    return {key: correction(items, CALIBRATIONS[key]) for key, items in found.items()}


def is_current(evidence: Evidence) -> bool:
    """Whether the job was compared with the current model (`fingerprint`)."""
    return evidence.model == fingerprint(evidence.calibration)


def is_far(evidence: Evidence) -> bool:
    """Whether the ratio is off by more than three standard deviations, which rather means a wrong size of the job."""
    return abs(math.log(evidence.ratio)) > 3 * evidence.calibration.log_slow / Z


def fingerprint(calibration: Calibration) -> str:
    """The fitted constants as text, which changes when the model is calibrated again."""
    constants = calibration.constants
    return " ".join(f"{part.name}={getattr(constants, part.name):g}" for part in fields(constants))
