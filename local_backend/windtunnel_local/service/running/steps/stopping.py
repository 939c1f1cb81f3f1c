"""Stopping: end the containers after a user's stop or a limit."""

from __future__ import annotations

from windtunnel_local.service.ground import lifecycle
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.running.between_attempts import started_hosts
from windtunnel_local.service.running.container_ends import bring_down
from windtunnel_local.service.running.context import Run


def stop(run: Run, job: Job) -> None:
    """End the containers: SIGTERM, SIGKILL when the grace period since the stop has passed; then upload."""
    # Containers that exist before the job has begun belong to a deleted job of the same name.
    hosts = started_hosts(run, job) if job.lifecycle.training_start is not None else []
    if not hosts:
        event = lifecycle.UploadStarted() if job.lifecycle.count("Training") else lifecycle.Stopped()
        run.advance(event, "Stopping")
        return
    since = job.lifecycle.transitions[-1].start
    bring_down(run, job, run.follow(job, hosts), since, run.ports.config.stop_grace_s, "Stopping")
    run.advance(lifecycle.UploadStarted(ended=run.unwatched_end(job)), "Stopping")
