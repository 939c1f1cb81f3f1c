"""The steps of a job, one file for each secondary status.

Each step can be repeated from its beginning, whatever a cut-off run of it left behind: before a
side effect that must not happen twice, it checks whether the effect has happened, and the record
changes only when the step is done. So a server adopts a job after a crash by running the step of
the job's secondary status.
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
