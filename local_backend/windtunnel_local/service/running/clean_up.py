"""Removes a job's containers and folder when it has ended, or keeps them as a warm pool."""

from __future__ import annotations

import logging

from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.ground.errors import RunnerError, RunnerUnavailable
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.running.context import Run

_log = logging.getLogger(__name__)

_REMOVE_PATIENCE_S = 600.0
_AWAY_POLL_S = 0.5


def release(run: Run, job: Job) -> None:
    """Remove the containers and the folder, or make them ready for the next job of the warm pool. Repeatable.

    The job's record is final by now: an error here does not fail the job.
    """
    if not run.pools.settle(job):
        run.queue.leave(run.name)  # what has ended needs no room while it is being removed
        remove(run, job)


def remove(run: Run, job: Job) -> None:
    """Remove them. If the engine is away, wait for it, but only if the job ever had containers. Repeatable.

    The next server removes what is left. A job that begins meanwhile gets another slot.
    """
    with run.pools.vacating(job.slot):
        _remove(run, job)


def _remove(run: Run, job: Job) -> None:
    clock = run.ports.clock
    deadline = clock.monotonic() + (_REMOVE_PATIENCE_S if job.lifecycle.training_start is not None else 0)
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
