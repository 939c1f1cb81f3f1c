"""How long a job has run, and how much of that time is billed, by SageMaker's rules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

from windtunnel_local.service.ground.job import Lifecycle, SpotTerms

_BETWEEN_ATTEMPTS = {"Starting", "Pending", "Interrupted", "Restarting"}


def running_time(lifecycle: Lifecycle, now: datetime) -> timedelta:
    """Running time of ONE instance up to ``now``: the sum over all attempts, each from its download to its end.

    Waiting for capacity, and the time from an interruption to the next download, do not count.
    """
    total = timedelta()
    for transition, runs in zip(
        lifecycle.transitions, running(t.status for t in lifecycle.transitions), strict=True
    ):
        if runs:
            total += max((transition.end or now) - transition.start, timedelta())
    return total


def running(secondaries: Iterable[str]) -> list[bool]:
    """For each secondary status of a job, in the order of time: whether its time counts as running time."""
    found, runs = [], False
    for secondary in secondaries:
        runs = secondary == "Downloading" or (runs and secondary not in _BETWEEN_ATTEMPTS)
        found.append(runs)
    return found


def training_seconds(lifecycle: Lifecycle) -> int | None:
    """TrainingTimeInSeconds of ONE instance, rounded up to whole seconds.

    None: the job still runs, or it ended before its download began.
    """
    if lifecycle.training_start is None or lifecycle.training_end is None:
        return None
    return max(1, math.ceil(running_time(lifecycle, lifecycle.training_end).total_seconds()))


def billable_seconds(lifecycle: Lifecycle, spot: SpotTerms | None = None) -> int | None:
    """BillableTimeInSeconds of ONE instance: the training time; for a spot job reduced by the assumed discount."""
    seconds = training_seconds(lifecycle)
    if seconds is None or spot is None:
        return seconds
    return max(1, math.ceil(round(seconds * (1 - spot.discount), 6)))
