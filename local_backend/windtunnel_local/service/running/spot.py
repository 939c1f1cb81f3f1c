"""Simulated managed spot training: when a job is interrupted, and the saving that is assumed.

Interruptions are simulated only if somebody asks for them: a job in its Environment, or for all spot jobs the
backend's settings of the same names (`settings`; what they mean: `SpotTerms`). Only the settings name the discount,
an assumption, since real spot prices change by the hour.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_args

from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.containers import LogLine
from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.ground.job import MOST_INTERRUPTIONS, Job, SpotClock, SpotTerms

INTERRUPTIONS = "WINDTUNNEL_SPOT_INTERRUPTIONS"
SEED = "WINDTUNNEL_SPOT_SEED"
MEAN_S = "WINDTUNNEL_SPOT_MEAN_SECONDS"
AFTER = "WINDTUNNEL_SPOT_AFTER"

_NAMED: Mapping[SpotClock, str] = {"start": "attempt's start", "checkpoint": "attempt's first checkpoint"}


def terms(request: Mapping[str, Any], config: ServiceConfig) -> SpotTerms | None:
    """How the spot capacity of a CreateTrainingJob request is simulated; None: it asks for none.

    Raises:
        ValidationFailed: a variable in Environment has a value that is not allowed.
    """
    if not request.get("EnableManagedSpotTraining"):
        return None
    given, usual = request.get("Environment", {}), config.spot
    interruptions = _number(given, INTERRUPTIONS, usual.interruptions, most=MOST_INTERRUPTIONS)
    seed = _number(given, SEED, usual.seed)
    mean_s = _number(given, MEAN_S, usual.mean_s)
    after = given.get(AFTER, usual.after)
    if after not in get_args(SpotClock):
        valid = " or ".join(get_args(SpotClock))
        raise ValidationFailed(f"Environment: {AFTER} is {after!r}; it must be {valid}.")
    if after == "checkpoint" and interruptions and "CheckpointConfig" not in request:
        raise ValidationFailed(
            f"Environment: {AFTER} is 'checkpoint', but the job has no CheckpointConfig. Add one, or use 'start'."
        )
    return SpotTerms(int(interruptions), int(seed), mean_s, usual.discount, cast(SpotClock, after))


def moments_s(spot: SpotTerms) -> Sequence[float]:
    """For each interrupted attempt, the seconds until its interruption: 0.5 to 1.5 times the mean."""
    source = random.Random(spot.seed)  # noqa: S311 - the moments must be reproducible
    return [spot.mean_s * (0.5 + source.random()) for _ in range(spot.interruptions)]


def next_moment_s(job: Job) -> float | None:
    """The seconds until the current attempt is interrupted; None: it is not interrupted."""
    done = job.lifecycle.count("Interrupted")
    if job.spot is None or done >= job.spot.interruptions:
        return None
    return moments_s(job.spot)[done]


def interruption_message(job: Job) -> str:
    """The message of the transition to Interrupted."""
    spot = job.spot
    if spot is None:
        return ""
    number = job.lifecycle.count("Interrupted") + 1
    return (
        f"The managed spot training instances were interrupted (simulated: {number} of {spot.interruptions},"
        f" seed {spot.seed}); the job starts again from its checkpoints"
    )


def preface(job: Job, host: str) -> tuple[LogLine, ...]:
    """The backend's line at the start of the first host's log, in each attempt of a spot job; otherwise empty."""
    spot = job.spot
    if spot is None or host != job.hosts[0]:
        return ()
    done = job.lifecycle.count("Interrupted")
    text = (
        f"Windtunnel: managed spot training is simulated: {done} of {spot.interruptions} interruptions so far"
        f" (seed {spot.seed}, each {spot.mean_s:g} s on average after the {_NAMED[spot.after]})."
        f" BillableTimeInSeconds assumes that spot capacity saves {spot.discount:.0%} of the on-demand price."
    )
    return (LogLine(int(job.lifecycle.attempt_start.timestamp() * 1000), text),)


def _number(given: Mapping[str, str], name: str, default: float, most: float = 10**9) -> float:
    text = given.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most or (name != MEAN_S and not value.is_integer()):
        raise ValidationFailed(
            f"Environment: {name} is {text!r}; it must be a"
            f" {'number' if name == MEAN_S else 'whole number'} from 0 to {most:g}."
        )
    return value
