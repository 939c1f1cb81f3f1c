"""The life of a training job: a pure state machine.

    Starting ──▶ Downloading ──▶ Training ──▶ Uploading ──▶ Completed
        │             │              │            │  └────▶ Failed   (from every state)
        └─────────────┴──▶ Stopping ◀┘            │
                              └──▶ Uploading ──▶ Stopped | MaxRuntimeExceeded

The secondary status is the place in this picture; the status is InProgress until a
stop (Stopping) or the end. Billing runs from the start of Downloading to the end of
Uploading. The messages are those that SageMaker shows for the same transitions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from windtunnel_local.service.errors import IllegalTransition
from windtunnel_local.service.model import Lifecycle, SecondaryStatus, Transition

MESSAGES: dict[SecondaryStatus, str] = {
    "Starting": "Preparing the instances for training",
    "Downloading": "Downloading input data",
    "Training": "Training image download completed. Training in progress.",
    "Stopping": "Stopping the training job",
    "Uploading": "Uploading generated training model",
    "Completed": "Training job completed",
    "Failed": "Training job failed",
    "Stopped": "Training job stopped",
    "MaxRuntimeExceeded": "Training job runtime exceeded MaxRuntimeInSeconds provided",
}


@dataclass(frozen=True)
class ProvisioningProgress:
    """The environment is being prepared; ``message`` says how far it is."""

    message: str


@dataclass(frozen=True)
class DownloadStarted:
    """The image is there; inputs are fetched. The bill starts here."""


@dataclass(frozen=True)
class TrainingStarted:
    """All containers run."""


@dataclass(frozen=True)
class StopRequested:
    """The user wants the job to stop. Changes nothing once it is stopping or uploading."""


@dataclass(frozen=True)
class MaxRuntimeReached:
    """The job has run for MaxRuntimeInSeconds."""


@dataclass(frozen=True)
class UploadStarted:
    """All containers have ended and their logs are stored. ``failure_reason``: why the job will fail."""

    failure_reason: str | None = None


@dataclass(frozen=True)
class Succeeded:
    """Everything is uploaded."""


@dataclass(frozen=True)
class Failed:
    """The job cannot go on, or its script failed."""

    reason: str


@dataclass(frozen=True)
class Stopped:
    """The stop is complete, and what there was is uploaded."""


Event = (
    ProvisioningProgress
    | DownloadStarted
    | TrainingStarted
    | StopRequested
    | MaxRuntimeReached
    | UploadStarted
    | Succeeded
    | Failed
    | Stopped
)


def begin(now: datetime) -> Lifecycle:
    """The lifecycle of a job that was just accepted."""
    first = Transition("Starting", now, None, MESSAGES["Starting"])
    return Lifecycle("InProgress", "Starting", (first,), created=now, modified=now)


def advance(lifecycle: Lifecycle, event: Event, now: datetime) -> Lifecycle:
    """The lifecycle after ``event``.

    A wall clock that was set back does not reorder a job: times never run backwards.

    Raises:
        IllegalTransition: the event is not allowed in this state; a finished job allows none.
    """
    if lifecycle.finished:
        raise IllegalTransition(f"{event!r}: the job has ended as {lifecycle.status}.")
    now = max(now, lifecycle.modified)
    match event, lifecycle.secondary:
        case ProvisioningProgress(message=message), "Starting":
            return _reword(lifecycle, message, now)
        case DownloadStarted(), "Starting":
            return replace(_enter(lifecycle, "Downloading", now), training_start=now)
        case TrainingStarted(), "Downloading":
            return _enter(lifecycle, "Training", now)
        case StopRequested(), "Starting" | "Downloading" | "Training":
            return replace(_enter(lifecycle, "Stopping", now), status="Stopping", stop_cause="requested")
        case StopRequested(), "Stopping" | "Uploading":
            return lifecycle
        case MaxRuntimeReached(), "Training":
            return replace(_enter(lifecycle, "Stopping", now), status="Stopping", stop_cause="max_runtime")
        case UploadStarted(failure_reason=reason), "Training":
            return replace(_enter(lifecycle, "Uploading", now), failure_reason=reason)
        case UploadStarted(failure_reason=None), "Stopping" if lifecycle.training_start is not None:
            return _enter(lifecycle, "Uploading", now)
        case _:
            return _end(lifecycle, event, now)


def _end(lifecycle: Lifecycle, event: Event, now: datetime) -> Lifecycle:
    """The three ways to end."""
    uploading = lifecycle.secondary == "Uploading"
    match event:
        case Succeeded() if uploading and lifecycle.failure_reason is None and lifecycle.stop_cause is None:
            return replace(_finish(lifecycle, "Completed", now), status="Completed")
        case Failed(reason=reason):
            return replace(_finish(lifecycle, "Failed", now), status="Failed", failure_reason=reason)
        case Stopped() if lifecycle.stop_cause is not None:
            exceeded = lifecycle.stop_cause == "max_runtime"
            last: SecondaryStatus = "MaxRuntimeExceeded" if exceeded else "Stopped"
            return replace(_finish(lifecycle, last, now), status="Stopped")
        case _:
            raise IllegalTransition(f"{event!r} is not allowed while {lifecycle.secondary}.")


def _enter(lifecycle: Lifecycle, secondary: SecondaryStatus, now: datetime) -> Lifecycle:
    """Close the current transition and open the next at the same instant."""
    *earlier, current = lifecycle.transitions
    opened = Transition(secondary, now, None, MESSAGES[secondary])
    return replace(
        lifecycle,
        secondary=secondary,
        transitions=(*earlier, replace(current, end=now), opened),
        modified=now,
    )


def _finish(lifecycle: Lifecycle, secondary: SecondaryStatus, now: datetime) -> Lifecycle:
    """Enter a last state, which ends as it begins; the bill stops if it ever ran."""
    entered = _enter(lifecycle, secondary, now)
    *earlier, last = entered.transitions
    billed = now if lifecycle.training_start is not None else None
    return replace(entered, transitions=(*earlier, replace(last, end=now)), training_end=billed)


def _reword(lifecycle: Lifecycle, message: str, now: datetime) -> Lifecycle:
    """Change the message of the current transition."""
    *earlier, current = lifecycle.transitions
    return replace(lifecycle, transitions=(*earlier, replace(current, message=message)), modified=now)
