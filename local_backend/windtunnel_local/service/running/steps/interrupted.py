"""Interrupted and Restarting: end an attempt, so that the job can begin again."""

from __future__ import annotations

import logging
from contextlib import suppress

from windtunnel_local.service.ground import lifecycle
from windtunnel_local.service.ground.errors import RunnerError
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.running.between_attempts import end_attempt, started_hosts
from windtunnel_local.service.running.container_ends import bring_down, drain
from windtunnel_local.service.running.context import Run

_log = logging.getLogger(__name__)


def interrupt(run: Run, job: Job) -> None:
    """End the attempt after a spot interruption (SIGTERM, grace period, SIGKILL), then begin the next one."""
    since = job.lifecycle.transitions[-1].start
    hosts = started_hosts(run, job)
    followers = run.follow(job, hosts) if hosts else []
    bring_down(run, job, followers, since, run.ports.config.stop_grace_s, "Interrupted")
    end_attempt(run, job, followers)
    run.advance(lifecycle.Restarted(), "Interrupted")


def restart(run: Run, job: Job) -> None:
    """End the attempt after the platform lost containers: kill the others, then begin the next one."""
    hosts = started_hosts(run, job)
    for host in hosts:
        with suppress(RunnerError):
            run.ports.runner.kill(job.slot, host)
    followers = run.followers or (run.follow(job, hosts) if hosts else [])
    try:
        drain(run, followers)
    except RunnerError as error:  # the last output of lost containers cannot be read
        _log.warning("Job %s: the log of the lost attempt may be incomplete: %s", job.name, error)
    end_attempt(run, job, followers)
    run.advance(lifecycle.Restarted(), "Restarting")
