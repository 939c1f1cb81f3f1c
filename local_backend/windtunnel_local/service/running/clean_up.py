"""What becomes of a job's containers and folder when it has ended."""

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
    """Remove them, or make them ready for a later job if they are kept for one. Repeatable.

    The job's record is final by now: nothing here fails the job.
    """
    if not run.pools.settle(job):
        remove(run, job)


def remove(run: Run, job: Job) -> None:
    """Remove them. An engine that is away is waited for, unless the job never started a container. Repeatable.

    What is not removed now, the next server removes. A job that begins meanwhile gets another slot.
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
