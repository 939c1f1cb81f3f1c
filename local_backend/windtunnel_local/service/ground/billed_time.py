"""How long a job has run and what of it is billed, by SageMaker's rules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

from windtunnel_local.service.ground.job import Lifecycle, SpotTerms

_BETWEEN_ATTEMPTS = {"Starting", "Pending", "Interrupted", "Restarting"}


def running_time(lifecycle: Lifecycle, now: datetime) -> timedelta:
    """Wall clock of ONE instance up to ``now``, over all attempts: from each download to the attempt's end.

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
    """Of each secondary status in the order of a job's life: whether its time counts."""
    found, runs = [], False
    for secondary in secondaries:
        runs = secondary == "Downloading" or (runs and secondary not in _BETWEEN_ATTEMPTS)
        found.append(runs)
    return found


def training_seconds(lifecycle: Lifecycle) -> int | None:
    """TrainingTimeInSeconds: whole seconds of ONE instance; a started second counts.

    None: not known yet (the job runs), or nothing ran (the job ended before its download began).
    """
    if lifecycle.training_start is None or lifecycle.training_end is None:
        return None
    return max(1, math.ceil(running_time(lifecycle, lifecycle.training_end).total_seconds()))


def billable_seconds(lifecycle: Lifecycle, spot: SpotTerms | None = None) -> int | None:
    """BillableTimeInSeconds of ONE instance: the training time, less the discount assumed for a spot job."""
    seconds = training_seconds(lifecycle)
    if seconds is None or spot is None:
        return seconds
    return max(1, math.ceil(round(seconds * (1 - spot.discount), 6)))
