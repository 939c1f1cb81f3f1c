"""The states of a warm pool, as the records of its jobs show them: a pure state machine.

    InUse ──▶ Available ──▶ Reused       a matching job took it over, whose own pool is InUse from then on
      │           └───────▶ Terminated   the keep-alive period has passed, or it cannot be kept
      └───────────────────▶ Terminated

Each job has a record of its own; the containers go from one to the next (`Job.slot`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from windtunnel_local.service.ground.job import Job, WarmPool
from windtunnel_local.service.ground.unix_time import microseconds, moment

LONGEST = timedelta(days=28)
"""The longest life of a pool that goes from job to job, from the first start of its containers."""

_MATCHING = ("InstanceType", "InstanceCount", "VolumeKmsKeyId", "VolumeSizeInGB")
_MATCHING_MEMBERS = ("RoleArn", "VpcConfig", "SessionChainingConfig")
_MATCHING_FLAGS = ("EnableInterContainerTrafficEncryption", "EnableNetworkIsolation")
_OF_THE_JOB = ("AlgorithmError:", "ClientError:")


def begin(job: Job) -> WarmPool | None:
    """The pool of a job that has just been accepted; None if the job asks for none."""
    return WarmPool("InUse") if job.keep_alive_s else None


def matches(pool: Job, job: Job) -> bool:
    """Whether SageMaker would let ``job`` reuse the pool that the job ``pool`` left."""
    one, other = pool.request, job.request
    if other.get("EnableManagedSpotTraining") or other["ResourceConfig"].get("InstanceGroups"):
        return False
    same = all(one["ResourceConfig"].get(name) == other["ResourceConfig"].get(name) for name in _MATCHING)
    same = same and all(one.get(name) == other.get(name) for name in _MATCHING_MEMBERS)
    return same and all(bool(one.get(flag)) == bool(other.get(flag)) for flag in _MATCHING_FLAGS)


def took_over(pool: WarmPool, begins: Mapping[str, str]) -> WarmPool:
    """The pool of a job that has taken over the pool of another one."""
    return WarmPool("InUse", launched_us=pool.launched_us, begins=dict(begins))


def at_end(job: Job, now: datetime) -> Job:
    """The job with its pool Available or Terminated, if it has just ended. Idempotent.

    As on SageMaker, the pool is kept also if the job was stopped, or failed with an error of its own.
    """
    pool, life = job.warm_pool, job.lifecycle
    if pool is None or pool.status != "InUse" or not life.finished:
        return job
    begun = life.training_start
    launched = moment(pool.launched_us) if pool.launched_us is not None else begun
    healthy = life.failure_reason is None or life.failure_reason.startswith(_OF_THE_JOB)
    if begun is None or launched is None or not healthy or not job.keep_alive_s or now - launched >= LONGEST:
        return replace(job, warm_pool=replace(pool, status="Terminated", retained_billable_s=0))
    launched_us, retained_us = microseconds(launched), microseconds(now)
    kept = replace(pool, status="Available", launched_us=launched_us, retained_us=retained_us, ready=False)
    return replace(job, warm_pool=kept)


def until(job: Job) -> datetime:
    """When an Available pool ends if no job takes it over."""
    pool = job.warm_pool
    if pool is None or pool.retained_us is None:
        return moment(0)
    end = moment(pool.retained_us) + timedelta(seconds=job.keep_alive_s)
    return end if pool.launched_us is None else min(end, moment(pool.launched_us) + LONGEST)


def made_ready(pool: WarmPool | None) -> WarmPool | None:
    """An Available pool, marked as ready to be taken over; any other unchanged."""
    return replace(pool, ready=True) if pool and pool.status == "Available" else pool


def reused(job: Job, by: str, now: datetime) -> Job:
    """The job, after the job ``by`` has taken over its Available pool."""
    return _over(job, "Reused", by, now)


def terminated(job: Job, now: datetime) -> Job:
    """The job, after its Available pool has ended; the pool is billed for its keep-alive period at most."""
    return _over(job, "Terminated", None, now)


def _over(job: Job, status: Any, by: str | None, now: datetime) -> Job:
    pool = job.warm_pool
    if pool is None or pool.status != "Available" or pool.retained_us is None:
        return job
    kept = max((min(now, until(job)) - moment(pool.retained_us)).total_seconds(), 0.0)
    ended = replace(pool, status=status, reused_by=by, retained_billable_s=math.ceil(kept), ready=False)
    return replace(job, warm_pool=ended)
