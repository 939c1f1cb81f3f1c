"""Downloading: fill the job's folder with its inputs, and start its containers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from windtunnel_local.service.data import inputs, outputs, warm_pool_folders
from windtunnel_local.service.data.checkpoints import fetch_checkpoints
from windtunnel_local.service.data.compile_cache import fetch_cache
from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.ground import lifecycle
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.job_paths import ML, TENSORBOARD, JobPaths
from windtunnel_local.service.request import plan, requests
from windtunnel_local.service.running.context import Run

_START_S = 3600
"""The longest start of a container, in seconds: a job's keys are valid for so much longer than the job may run."""


def download(run: Run, job: Job) -> None:
    """Prepare the folder and start the containers, unless a cut-off run of this step has done so."""
    states = [run.ports.runner.state(job.slot, host).status for host in job.hosts]
    if not set(states) <= {"running", "exited"}:
        ready = plan.has_taken_over(job) and set(states) == {"created"}
        if plan.has_taken_over(job) and not (ready and _is_emptied(run, job)):
            job = run.pools.start_cold(job)
        elif not ready and set(states) != {"absent"}:
            run.ports.runner.remove(job.slot)
        run.begin_anew(job)
        _prepare(run, job)
    run.advance(lifecycle.TrainingStarted(), "Downloading")


def _prepare(run: Run, job: Job) -> None:
    def check() -> None:
        run.check_time("Downloading")

    objects, folders = run.ports.objects, run.folders(job)
    outputs.require_place(job, objects)
    if not plan.has_taken_over(job):
        _clear(folders)
    if plan.is_kept(job):
        warm_pool_folders.make_folders(job, folders)
    for host in job.hosts:
        for folder in folders.folders(host):
            folder.mkdir(parents=True, exist_ok=True)
        _make_mount_points(job, folders, host)
        for name, content in plan.config_files(job, host).items():
            (folders.config(host) / name).write_text(json.dumps(content, indent=2))
    inputs.provide_source(job, folders, objects)
    read_only = run.ports.runner.read_only_mounts
    mounts = inputs.provide_channels(
        job, folders, objects, check, read_only_mounts=read_only, in_views=plan.is_kept(job)
    )
    fetch_checkpoints(job, folders, objects, check)
    fetch_cache(job, folders, objects, check)
    check()
    run.ports.runner.start(plan.plan_job(job, run.ports.config, mounts, _keys(run, job)))


def _keys(run: Run, job: Job) -> Mapping[str, str]:
    """Variables with AWS keys, for a job whose code may call this backend; the keys end with the job."""
    config = run.ports.config
    if not requests.reaches_aws(job, config.aws_in_jobs):
        return {}
    longest_s = requests.max_runtime_s(job) + config.stop_grace_s + _START_S
    return run.ports.job_keys(job, run.ports.clock.now() + timedelta(seconds=longest_s))


def _is_emptied(run: Run, job: Job) -> bool:
    """Remove an earlier job's files from the folders that were taken over; False: a folder is missing."""
    return warm_pool_folders.empty(job, run.folders(job), plan.plan_job(job, run.ports.config))


def _clear(folders: JobPaths) -> None:
    """Remove what an earlier attempt left, except the files kept for the report."""
    # The manifest goes first: while it exists, a file missing in the checkpoint folders counts as deleted by the
    # script, and is deleted in S3 too.
    folders.checkpoint_manifest.unlink(missing_ok=True)
    for path in folders.root.glob("*"):
        if path != folders.earlier:
            remove_tree(path)


def _make_mount_points(job: Job, folders: JobPaths, host: str) -> None:
    """Create the folders of mounts and their targets, because otherwise the engine creates them as root."""
    if requests.tensorboard_path(job) != TENSORBOARD:
        folders.tensorboard(host).mkdir(parents=True, exist_ok=True)
    for target in (requests.checkpoint_path(job), requests.tensorboard_path(job)):
        if target.startswith(f"{ML}/"):
            (folders.ml(host) / Path(target).relative_to(ML)).mkdir(parents=True, exist_ok=True)
