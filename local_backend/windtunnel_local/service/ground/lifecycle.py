"""The life of a training job: a pure state machine.

        ┌───────────── Interrupted | Restarting ◀┐
        ▼                                        │
    Starting ─▶ (Pending) ─▶ Downloading ─▶ Training ─▶ Uploading ─▶ Completed
        │           │             │              │          └─────▶ Failed   (from every state)
        └───────────┴─────────────┴─▶ Stopping ◀─┘
                                         └─▶ Uploading ─▶ Stopped | MaxRuntimeExceeded | MaxWaitTimeExceeded

The picture shows the secondary status; the status is InProgress until a stop (Stopping) or
the end. Pending: no room on this machine yet. Interrupted: a simulated spot interruption.
Restarting: the platform lost the containers and RetryStrategy allows another attempt.
A stop while Uploading ends the upload: the rest is not stored. The billed time runs from
the start of Downloading to the end of Uploading, without the gaps between attempts. The
messages are SageMaker's for the same transitions, if it has any. Each transition begins
when the one before ends, except after a wait for a server or the engine: see `UploadStarted` and `BegunAnew`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from windtunnel_local.service.ground.errors import IllegalTransition
from windtunnel_local.service.ground.job import Lifecycle, SecondaryStatus, StopCause, Transition

MAX_REASON_CHARACTERS = 1024
"""The most that FailureReason may have, as on AWS."""
MESSAGES: dict[SecondaryStatus, str] = {
    "Starting": "Preparing the instances for training",
    "Downloading": "Downloading input data",
    "Pending": "Preparing the instances for training",
    "Training": "Training image download completed. Training in progress.",
    "Interrupted": "The managed spot training instances were interrupted",
    "Restarting": "Restarting the training job",
    "Stopping": "Stopping the training job",
    "Uploading": "Uploading generated training model",
    "Completed": "Training job completed",
    "Failed": "Training job failed",
    "Stopped": "Training job stopped",
    "MaxRuntimeExceeded": "Training job runtime exceeded MaxRuntimeInSeconds provided",
    "MaxWaitTimeExceeded": "Training job wait time exceeded MaxWaitTimeInSeconds provided",
}
MAX_PENDING_MESSAGE = "Training job pending time exceeded MaxPendingTimeInSeconds provided"
_LAST: dict[str, SecondaryStatus] = {
    "max_runtime": "MaxRuntimeExceeded",
    "max_wait": "MaxWaitTimeExceeded",
}
_BEFORE_THE_END = (
    "Starting", "Pending", "Downloading", "Training", "Interrupted", "Restarting",
)  # fmt: skip


@dataclass(frozen=True)
class ProvisioningProgress:
    """The image is being prepared; ``message`` is a line of progress."""

    message: str


@dataclass(frozen=True)
class Queued:
    """There is no room for the job yet; ``message`` says what it waits for."""

    message: str


@dataclass(frozen=True)
class DownloadStarted:
    """The image is there, and the inputs are being fetched. The billed time starts here."""


@dataclass(frozen=True)
class TrainingStarted:
    """All containers have been started."""


@dataclass(frozen=True)
class StopRequested:
    """The user asked to stop the job. Changes nothing if it stops already; while it uploads, ends the upload."""


@dataclass(frozen=True)
class MaxRuntimeReached:
    """The job has run for MaxRuntimeInSeconds."""


@dataclass(frozen=True)
class MaxWaitReached:
    """MaxWaitTimeInSeconds have passed since the job's creation."""


@dataclass(frozen=True)
class MaxPendingReached:
    """The job has waited for room for MaxPendingTimeInSeconds."""


@dataclass(frozen=True)
class SpotInterrupted:
    """A simulated spot interruption; ``message`` says that it is simulated."""

    message: str


@dataclass(frozen=True)
class Lost:
    """The platform lost the job's containers, and the job may try again.

    ``message``: what happened. ``ended``: as of `UploadStarted`.
    """

    message: str
    ended: datetime | None = None


@dataclass(frozen=True)
class Restarted:
    """The last attempt's files are stored and its containers removed; the next attempt begins."""


@dataclass(frozen=True)
class UploadStarted:
    """All containers have ended and their logs are stored.

    ``failure_reason``: why the job will fail. ``ended``: when the containers had ended, if no server or engine
    was there to see it; the time from then until now belongs to no status and is not billed.
    """

    failure_reason: str | None = None
    ended: datetime | None = None


@dataclass(frozen=True)
class BegunAnew:
    """A step that was cut off because the server or the engine went away begins again. The time lost is not billed."""


@dataclass(frozen=True)
class Succeeded:
    """Everything is uploaded."""


@dataclass(frozen=True)
class Failed:
    """The job cannot go on, or its script failed."""

    reason: str


@dataclass(frozen=True)
class Stopped:
    """The stop is complete. The outputs are uploaded, unless the stop came during the upload."""


Event = (
    ProvisioningProgress
    | Queued
    | DownloadStarted
    | TrainingStarted
    | StopRequested
    | MaxRuntimeReached
    | MaxWaitReached
    | MaxPendingReached
    | SpotInterrupted
    | Lost
    | Restarted
    | UploadStarted
    | BegunAnew
    | Succeeded
    | Failed
    | Stopped
)


def begin(now: datetime) -> Lifecycle:
    """The lifecycle of a job that has just been accepted."""
    first = Transition("Starting", now, None, MESSAGES["Starting"])
    return Lifecycle("InProgress", "Starting", (first,), created=now, modified=now)


def advance(lifecycle: Lifecycle, event: Event, now: datetime) -> Lifecycle:
    """The lifecycle after ``event``.

    If the wall clock was set back, the time of the last change is used: times never run backwards.

    Raises:
        IllegalTransition: the event is not allowed in this state; a finished job allows none.
    """
    if lifecycle.finished:
        raise IllegalTransition(f"{event!r}: the job has ended as {lifecycle.status}.")
    now = max(now, lifecycle.modified)
    match event, lifecycle.secondary:
        case ProvisioningProgress(message=message), "Starting" | "Pending":
            return _reword(lifecycle, message, now)
        case Queued(message=message), "Starting":
            return _reword(_enter(lifecycle, "Pending", now), message, now)
        case Queued(message=message), "Pending":
            return _reword(lifecycle, message, now)
        case DownloadStarted(), "Starting" | "Pending":
            begun = lifecycle.training_start or now
            return replace(_enter(lifecycle, "Downloading", now), training_start=begun)
        case TrainingStarted(), "Downloading":
            return _enter(lifecycle, "Training", now)
        case StopRequested(), "Uploading" if lifecycle.stop_cause is None:
            return replace(lifecycle, status="Stopping", stop_cause="requested_late", modified=now)
        case StopRequested(), "Stopping" | "Uploading":
            return lifecycle
        case SpotInterrupted(message=message), "Training":
            return _reword(_enter(lifecycle, "Interrupted", now), message, now)
        case Lost(message=message, ended=ended), "Downloading" | "Training":
            return _reword(_enter(lifecycle, "Restarting", now, ended), message, now)
        case Restarted(), "Interrupted" | "Restarting":
            return _enter(lifecycle, "Starting", now)
        case UploadStarted(failure_reason=reason, ended=ended), "Training":
            return replace(_enter(lifecycle, "Uploading", now, ended), failure_reason=reason)
        case UploadStarted(failure_reason=None, ended=ended), "Stopping" if (
            lifecycle.training_start is not None
        ):
            return _enter(lifecycle, "Uploading", now, ended)
        case BegunAnew(), "Downloading" | "Uploading":
            *earlier, current = lifecycle.transitions
            return replace(lifecycle, transitions=(*earlier, replace(current, start=now)), modified=now)
        case _, secondary if secondary in _BEFORE_THE_END and (cause := _stop_cause(event, secondary)):
            return replace(_enter(lifecycle, "Stopping", now), status="Stopping", stop_cause=cause)
        case _:
            return _end(lifecycle, event, now)


def _stop_cause(event: Event, secondary: SecondaryStatus) -> StopCause | None:
    """The reason why ``event`` stops a job in status ``secondary``; None if it does not stop it."""
    match event, secondary:
        case StopRequested(), _:
            return "requested"
        case MaxWaitReached(), _:
            return "max_wait"
        case MaxRuntimeReached(), "Training":
            return "max_runtime"
        case MaxPendingReached(), "Pending":
            return "max_pending"
    return None


def _end(lifecycle: Lifecycle, event: Event, now: datetime) -> Lifecycle:
    """The lifecycle after one of the three last events: Succeeded, Failed, Stopped."""
    uploading = lifecycle.secondary == "Uploading"
    match event:
        # A stop that came when all was stored already changes nothing: the job is Completed.
        case Succeeded() if (
            uploading
            and lifecycle.failure_reason is None
            and lifecycle.stop_cause in (None, "requested_late")
        ):
            return replace(_finish(lifecycle, "Completed", now), status="Completed")
        case Failed(reason=reason):
            reason = reason[:MAX_REASON_CHARACTERS]
            return replace(_finish(lifecycle, "Failed", now), status="Failed", failure_reason=reason)
        case Stopped() if lifecycle.stop_cause is not None:
            last = _LAST.get(lifecycle.stop_cause, "Stopped")
            stopped = replace(_finish(lifecycle, last, now), status="Stopped")
            exceeded = lifecycle.stop_cause == "max_pending"
            return _reword(stopped, MAX_PENDING_MESSAGE, now) if exceeded else stopped
        case _:
            raise IllegalTransition(f"{event!r} is not allowed while {lifecycle.secondary}.")


def _enter(
    lifecycle: Lifecycle, secondary: SecondaryStatus, now: datetime, ended: datetime | None = None
) -> Lifecycle:
    """Open the next transition now; close the current one now too, or at ``ended`` if that is given."""
    *earlier, current = lifecycle.transitions
    closed = now if ended is None else min(max(ended, current.start), now)
    opened = Transition(secondary, now, None, MESSAGES[secondary])
    return replace(
        lifecycle,
        secondary=secondary,
        transitions=(*earlier, replace(current, end=closed), opened),
        modified=now,
    )


def _finish(lifecycle: Lifecycle, secondary: SecondaryStatus, now: datetime) -> Lifecycle:
    """Enter a terminal status, whose transition ends at once; set TrainingEndTime if the job ever ran."""
    entered = _enter(lifecycle, secondary, now)
    *earlier, last = entered.transitions
    billed = now if lifecycle.training_start is not None else None
    return replace(entered, transitions=(*earlier, replace(last, end=now)), training_end=billed)


def _reword(lifecycle: Lifecycle, message: str, now: datetime) -> Lifecycle:
    """Change the message of the current transition."""
    *earlier, current = lifecycle.transitions
    return replace(lifecycle, transitions=(*earlier, replace(current, message=message)), modified=now)
