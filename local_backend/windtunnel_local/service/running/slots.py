"""What a job takes at its start and gives back at its end: containers and a folder of files."""

from __future__ import annotations

import logging

from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.ground.errors import RunnerError, RunnerUnavailable
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.running.context import Run

_log = logging.getLogger(__name__)

_AWAY_PATIENCE_S = 600.0
_AWAY_POLL_S = 0.5


def claim(run: Run, job: Job) -> Job:
    """Called once the queue has let the job in, before anything is prepared; returns its record.

    It may take over what an earlier job has left (`Job.slot`). Repeatable.
    """
    return run.pools.claim(job.name, run.leaving)


def release(run: Run, job: Job) -> None:
    """Called at the job's end. The record is final already, so nothing here may fail the job. Repeatable.

    Containers that are kept for a later job stay, and get ready for it.
    """
    if not run.pools.settle(job):
        remove(run, job)


def remove(run: Run, job: Job) -> None:
    """Remove containers and folder; an engine that is away is waited for, if the job had come to use it.

    Repeatable. What is not removed now, the next server removes.
    """
    clock = run.ports.clock
    deadline = clock.monotonic() + (_AWAY_PATIENCE_S if job.lifecycle.training_start is not None else 0)
    while True:
        try:
            run.ports.runner.remove(job.slot)
        except RunnerUnavailable as error:
            if clock.monotonic() < deadline and not run.leaving.wait(_AWAY_POLL_S):
                continue
            _log.warning("Job %s: its containers are not removed yet: %s", job.name, error)
        except RunnerError as error:
            _log.warning("Job %s: its containers are not removed yet: %s", job.name, error)
        break
    remove_tree(run.folders(job).root)
