"""Starting and Pending: get capacity on this machine, and the image."""

from __future__ import annotations

from windtunnel_local.service.ground import lifecycle
from windtunnel_local.service.ground.job import Job, SecondaryStatus
from windtunnel_local.service.request import plan
from windtunnel_local.service.running.context import Run

_PROGRESS_INTERVAL_S = 0.2
_TICKS_IN_LINE = 20


def start(run: Run, job: Job) -> None:
    """Get the image if there is capacity for the job; otherwise make the job Pending."""
    behind = run.queue.admit(run.name, run.pools.candidate(job)) or _reserve(run, job)
    if behind is None:
        _provision(run, "Starting")
    else:
        run.advance(lifecycle.Queued(behind), "Starting")


def wait_in_line(run: Run, job: Job) -> None:
    """Wait for capacity in the queue, then at the runner; the transition's message says what the job waits for."""
    while (behind := run.queue.admit(run.name, run.pools.candidate(job))) is not None:
        job = _tell(run, job, behind)
        run.pause(_TICKS_IN_LINE)
    while (behind := _reserve(run, job)) is not None:
        job = _tell(run, job, behind)
        run.pause()
    run.advance(lifecycle.ProvisioningProgress(lifecycle.MESSAGES["Pending"]), "Pending")
    _provision(run, "Pending")


def _reserve(run: Run, job: Job) -> str | None:
    """Take over a warm pool if one matches, and reserve machines; None: they are there, else what the job waits for."""
    run.check_time(job.lifecycle.secondary)
    job = run.pools.claim(job.name, run.leaving)
    return run.ports.runner.reserve(job.slot, job.hosts)


def _tell(run: Run, job: Job, behind: str) -> Job:
    """Record what the job waits for, if it has changed; raise `Overtaken` if the job has waited for too long."""
    run.check_time("Pending")
    if behind == job.lifecycle.transitions[-1].message:
        return job
    return run.advance(lifecycle.Queued(behind), "Pending")


def _provision(run: Run, secondary: SecondaryStatus) -> None:
    """Make sure that the image is there, then go on to Downloading; the transition's message shows the progress."""
    run.check_time(secondary)
    job = run.records.get(run.name)
    clock = run.ports.clock
    last_s: float | None = None

    def progress(line: str) -> None:
        nonlocal last_s
        run.check_time(secondary)
        if last_s is None or clock.monotonic() - last_s >= _PROGRESS_INTERVAL_S:
            run.advance(lifecycle.ProvisioningProgress(line), secondary)
            last_s = clock.monotonic()

    image = plan.local_image(job.request["AlgorithmSpecification"]["TrainingImage"], run.ports.config)
    run.ports.runner.ensure_image(image, progress)
    if last_s is not None:
        run.advance(lifecycle.ProvisioningProgress(lifecycle.MESSAGES[secondary]), secondary)
    run.advance(lifecycle.DownloadStarted(), secondary)
