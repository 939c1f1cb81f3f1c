"""The steps of a job, one file a secondary status.

A step can be repeated from its beginning whatever an earlier attempt left behind: before a side
effect that must not happen twice it looks whether it has happened, and the record changes
only when the step is done. That is all there is to adopting a job after a crash: take the
step of its status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.running.context import Run
from windtunnel_local.service.running.steps.downloading import download
from windtunnel_local.service.running.steps.interrupted import interrupt, restart
from windtunnel_local.service.running.steps.starting import start, wait_in_line
from windtunnel_local.service.running.steps.stopping import stop
from windtunnel_local.service.running.steps.training import train
from windtunnel_local.service.running.steps.uploading import upload

__all__ = ["STEPS"]

STEPS: Mapping[str, Callable[[Run, Job], None]] = {
    "Starting": start,
    "Pending": wait_in_line,
    "Downloading": download,
    "Training": train,
    "Interrupted": interrupt,
    "Restarting": restart,
    "Stopping": stop,
    "Uploading": upload,
}
