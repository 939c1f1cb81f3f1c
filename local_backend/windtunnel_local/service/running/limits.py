"""StoppingCondition and RetryStrategy: how long a job may wait and run, and how often it may be retried."""

from __future__ import annotations

from datetime import datetime, timedelta

from windtunnel_local.service.ground import lifecycle
from windtunnel_local.service.ground.billed_time import running_time
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.request import requests

PLATFORM = "InternalServerError"
"""The beginning of a FailureReason that is the platform's fault, not the script's or the request's."""


def exceeded(job: Job, now: datetime) -> lifecycle.Event | None:
    """The event of the limit that the job has reached; None if it has reached none.

    All limits count the time of all attempts together. MaxWaitTimeInSeconds counts from the creation,
    MaxPendingTimeInSeconds the time in Pending, MaxRuntimeInSeconds the running time, downloads included.
    """
    life = job.lifecycle
    condition = job.request.get("StoppingCondition", {})
    wait_s, pending_s = condition.get("MaxWaitTimeInSeconds"), condition.get("MaxPendingTimeInSeconds")
    if life.secondary == "Training" and _reached(running_time(life, now), requests.max_runtime_s(job)):
        return lifecycle.MaxRuntimeReached()
    if _reached(now - life.created, wait_s):
        return lifecycle.MaxWaitReached()
    if life.secondary == "Pending" and _reached(_pending_time(job, now), pending_s):
        return lifecycle.MaxPendingReached()
    return None


def may_retry(job: Job, reason: str) -> bool:
    """Whether RetryStrategy lets a job that would fail with ``reason`` start again: after an InternalServerError."""
    most = int(job.request.get("RetryStrategy", {}).get("MaximumRetryAttempts", 0))
    attempted = job.lifecycle.secondary in ("Downloading", "Training")
    return attempted and reason.startswith(PLATFORM) and job.lifecycle.count("Restarting") < most


def retry_message(job: Job, reason: str) -> str:
    """The message of the transition to Restarting."""
    most = job.request["RetryStrategy"]["MaximumRetryAttempts"]
    number = job.lifecycle.count("Restarting") + 1
    return f"Restarting the training job, retry {number} of {most}: {reason}"


def _pending_time(job: Job, now: datetime) -> timedelta:
    waited = (t for t in job.lifecycle.transitions if t.status == "Pending")
    return sum(((t.end or now) - t.start for t in waited), timedelta())


def _reached(passed: timedelta, limit_s: int | None) -> bool:
    return limit_s is not None and passed.total_seconds() >= limit_s
