"""The end of a job's containers: which failed first, how they are stopped, and the wait for their last output."""

from __future__ import annotations

from datetime import datetime, timezone

from windtunnel_local.service.ground.containers import ContainerState
from windtunnel_local.service.ground.errors import RunnerError
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.running.context import Leaving, Run
from windtunnel_local.service.running.host_follower import HostFollower, raise_errors

_KILL_PATIENCE_S = 60.0
_DRAIN_PATIENCE_S = 60.0
_LATE = datetime.max.replace(tzinfo=timezone.utc)


def first_failure(followers: list[HostFollower]) -> tuple[str, ContainerState] | None:
    """The host that failed first, and its state: the others usually fail because of it. None: no host failed."""
    failed = [
        (follower.host, follower.exit)
        for follower in followers
        if follower.exit is not None and _went_wrong(follower.exit)
    ]
    return min(failed, key=lambda f: f[1].finished_at or _LATE, default=None)


def _went_wrong(state: ContainerState) -> bool:
    return state.status == "absent" or state.lost or state.exit_code != 0


def bring_down(
    run: Run, job: Job, followers: list[HostFollower], since: datetime, grace_s: float, secondary: str
) -> bool:
    """Stop all containers that still run, then wait until every line of their output is stored.

    They get SIGTERM now, and SIGKILL ``grace_s`` seconds after ``since``.

    Returns:
        Whether SIGKILL was needed.

    Raises:
        Leaving, Overtaken: the server leaves, or the job is no longer in ``secondary``.
        RunnerError: the containers do not end.
    """
    runner, clock = run.ports.runner, run.ports.clock
    if run.engine_away is not None:  # the grace period begins when SIGTERM can be sent
        since = max(since, run.engine_away)
    for follower in followers:
        if follower.exit is None:
            runner.terminate(job.slot, follower.host)
    # From here on a monotonic clock counts; the time that has passed since ``since`` is taken off.
    passed_s = max((run.now() - since).total_seconds(), 0.0)
    kill_at = clock.monotonic() + max(grace_s - passed_s, 0.0)
    killed_at: float | None = None
    while any(follower.exit is None for follower in followers):
        run.check(secondary)
        raise_errors(followers)
        if killed_at is None and clock.monotonic() >= kill_at:
            for follower in followers:
                if follower.exit is None:
                    runner.kill(job.slot, follower.host)
            killed_at = clock.monotonic()
        elif killed_at is not None and any(follower.stalled for follower in followers):
            killed_at = clock.monotonic()  # wait on: without engine or store, their end cannot be seen now
        elif killed_at is not None and clock.monotonic() - killed_at > _KILL_PATIENCE_S:
            raise RunnerError(
                "InternalServerError: the containers did not end within"
                f" {_KILL_PATIENCE_S:g} s of SIGKILL; look at the container engine (windtunnel doctor)."
            )
        run.pause()
    drain(run, followers)
    return killed_at is not None


def drain(run: Run, followers: list[HostFollower]) -> None:
    """Wait until every line of every host is stored. There is no time limit as long as lines keep coming.

    Raises:
        Leaving: the server leaves.
        RunnerError: no line came for a minute, though the log had not ended.
    """
    clock = run.ports.clock
    seen, since = -1, clock.monotonic()
    while not all(follower.drained for follower in followers):
        if run.leaving.is_set():
            raise Leaving
        raise_errors(followers)
        batches = sum(follower.batches for follower in followers)
        if batches != seen or any(follower.stalled for follower in followers):
            seen, since = batches, clock.monotonic()
        elif clock.monotonic() - since > _DRAIN_PATIENCE_S:
            silent = ", ".join(follower.host for follower in followers if not follower.drained)
            raise RunnerError(
                f"InternalServerError: the log of {silent} did not end within {_DRAIN_PATIENCE_S:g} s of"
                " its container."
            )
        run.pause()
