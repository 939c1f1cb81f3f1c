"""Training: watch the containers until they end or the job must stop."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from windtunnel_local.service.data import outputs
from windtunnel_local.service.ground import lifecycle
from windtunnel_local.service.ground.containers import ContainerState
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.request import plan
from windtunnel_local.service.running import limits, spot
from windtunnel_local.service.running.checkpoint_sync import Sync, checkpoints_synced
from windtunnel_local.service.running.container_ends import bring_down, drain, first_failure
from windtunnel_local.service.running.context import Run
from windtunnel_local.service.running.failure_reason import failure_reason
from windtunnel_local.service.running.host_follower import HostFollower, raise_errors
from windtunnel_local.service.running.start_failure import TAIL_LINES, missing_script, start_failure

_PEER_GRACE_S = 30.0
_EVERY_LINE = 2**62


def train(run: Run, job: Job) -> None:
    """Watch until all hosts have ended, one has failed, a limit is reached, or a spot interruption comes."""
    followers = run.follow(job, job.hosts)
    run.metrics(job).start()
    with checkpoints_synced(run, job) as sync:
        _watch(run, job, followers, sync)


def _watch(run: Run, job: Job, followers: list[HostFollower], sync: Sync) -> None:
    while True:
        run.check("Training")
        raise_errors(followers)
        first = first_failure(followers)
        if first is not None:
            peer_grace_s = min(_PEER_GRACE_S, run.ports.config.stop_grace_s)
            bring_down(run, job, followers, run.now(), peer_grace_s, "Training")
            reason = _reason(run, job, *first)
            if limits.may_retry(job, reason):
                lost = lifecycle.Lost(limits.retry_message(job, reason), run.unwatched_end(job))
                run.advance(lost, "Training")
            else:
                run.advance(lifecycle.UploadStarted(reason, run.unwatched_end(job)), "Training")
            return
        if all(f.exit is not None for f in followers):
            drain(run, followers)
            run.advance(lifecycle.UploadStarted(ended=run.unwatched_end(job)), "Training")
            return
        end = limits.exceeded(job, run.now()) or _interruption(job, sync, run.now())
        if end is not None and any(_runs(run, job, f.host) for f in followers if f.exit is None):
            run.advance(end, "Training")
            return
        run.usage.publish(job)
        run.pause()


def _interruption(job: Job, sync: Sync, now: datetime) -> lifecycle.Event | None:
    """The event of the next simulated spot interruption, if its time has come."""
    after_s = spot.next_moment_s(job)
    from_checkpoint = job.spot is not None and job.spot.after == "checkpoint"
    since = sync.stored_at if from_checkpoint else job.lifecycle.transitions[-1].start
    if after_s is None or since is None or (now - since).total_seconds() < after_s:
        return None
    return lifecycle.SpotInterrupted(spot.interruption_message(job))


def _runs(run: Run, job: Job, host: str) -> bool:
    """Whether a host's container still runs; if all have ended, no limit or interruption applies any more."""
    return run.ports.runner.state(job.slot, host).status == "running"


def _reason(run: Run, job: Job, host: str, state: ContainerState) -> str:
    now = run.ports.runner.state(job.slot, host)
    if now.status == "absent":  # `docker rm -f` sends SIGKILL first, which would look like a kill for memory
        state = now
    ports = run.ports
    outputs.make_outputs_readable(job, run.folders(job))
    tail = [event.message for event in ports.store.read_log_before(job.stream(host), _EVERY_LINE, TAIL_LINES)]
    start = start_failure(job, state.exit_code, tail, ports.config)
    if not state.lost:
        state = replace(state, why=state.why or missing_script(tail))
    limit = plan.memory_limit_bytes(job, ports.config, host)
    return failure_reason(host, state, run.folders(job), limit, start)
