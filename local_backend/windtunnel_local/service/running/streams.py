"""The names of log streams."""

from __future__ import annotations

from windtunnel_local.service.ground.job import Job


def stream_name(job: Job, host: str) -> str:
    """``<job>/algo-1-<unix seconds>``, one for each attempt; made from stored data only, so that a new
    server finds it again.
    """
    attempts = [t.start for t in job.lifecycle.transitions if t.status == "Downloading"]
    second = -1
    for begun in attempts or [job.lifecycle.created]:
        second = max(int(begun.timestamp()), second + 1)
    return f"{job.name}/{host}-{second}"
