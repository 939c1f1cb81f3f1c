"""UpdateTrainingJob: the members of a job that may change after it was accepted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from windtunnel_local.service.ground.errors import ValidationFailed
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.request.training_members import TRAINING_JOB

_KEPT_POOLS = ("InUse", "Available")


def updated(job: Job, request: Mapping[str, Any]) -> Job:
    """The job after an UpdateTrainingJob request.

    KeepAlivePeriodInSeconds can change while there is a warm pool. ProfilerConfig is only stored and shown,
    as in CreateTrainingJob: nothing is profiled here.

    Raises:
        ValidationFailed: the change is not simulated, or not possible in the job's state.
    """
    TRAINING_JOB.check(request)  # all of its members are members of CreateTrainingJob too
    changes = dict(job.updates)
    if "ResourceConfig" in request:
        _require_pool(job)
        changes["ResourceConfig"] = dict(request["ResourceConfig"])
    if "ProfilerConfig" in request:
        if job.lifecycle.finished:
            raise ValidationFailed(
                f"The request was rejected because the training job is in status {job.lifecycle.status}."
                " ProfilerConfig can be updated while the job is InProgress."
            )
        changes["ProfilerConfig"] = {**changes.get("ProfilerConfig", {}), **request["ProfilerConfig"]}
    return replace(job, updates=changes)


def _require_pool(job: Job) -> None:
    status = job.warm_pool.status if job.warm_pool else None
    if status not in _KEPT_POOLS:
        found = f"its warm pool is {status}" if status else "it was created without KeepAlivePeriodInSeconds"
        raise ValidationFailed(
            f"ResourceConfig.KeepAlivePeriodInSeconds of the training job {job.name} cannot be updated: {found}."
            f" The warm pool must be {' or '.join(_KEPT_POOLS)}."
        )
