"""The end of an attempt that is followed by another: what is stored before the containers are removed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from windtunnel_local.service.data import outputs
from windtunnel_local.service.data.checkpoints import store_checkpoints
from windtunnel_local.service.data.compile_cache import store_cache
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.observed import backend_lines
from windtunnel_local.service.running.context import Run
from windtunnel_local.service.running.host_follower import HostFollower

_NOT_STARTED = {"absent", "created"}
_SIGKILLED = 128 + 9
_SIGTERMED = 128 + 15


def started_hosts(run: Run, job: Job) -> list[str]:
    """The hosts whose container has been started, also if it has ended."""
    return [h for h in job.hosts if run.ports.runner.state(job.slot, h).status not in _NOT_STARTED]


def end_attempt(run: Run, job: Job, followers: list[HostFollower]) -> None:
    """Store what SageMaker would have stored in S3 by now, keep the counters, remove the containers. Repeatable.

    The model and output data of an attempt that was cut off are lost, as on SageMaker.

    Raises:
        ObjectError, OSError, RunnerError: one of these cannot be done.
    """
    objects, folders = run.ports.objects, run.folders(job)
    run.usage.forget(job)
    outputs.make_outputs_readable(job, folders)
    left_out: list[str] = []
    store_checkpoints(job, folders, objects, _killed(followers), left_out.append)
    store_cache(job, folders, objects)
    outputs.store_event_files(job, folders, objects, tell=left_out.append)
    backend_lines.say_once(run.ports, job, left_out)
    attempt = job.lifecycle.count("Downloading") - 1
    for host in job.hosts:
        counters, kept = folders.counters(host), folders.earlier_counters(attempt, host)
        if counters.is_dir() and not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            counters.rename(kept)
    run.unfollow()
    run.ports.runner.remove(job.slot)


def _killed(followers: list[HostFollower]) -> Mapping[str, datetime]:
    """For each host that was ended by a signal, when: it may have left a file that is only half written."""
    return {
        follower.host: follower.exit.finished_at
        for follower in followers
        if follower.exit is not None
        and follower.exit.exit_code in (_SIGKILLED, _SIGTERMED)
        and follower.exit.finished_at is not None
    }
