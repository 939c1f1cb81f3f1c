"""Uploading: store the job's outputs, and make its record final."""

from __future__ import annotations

import errno
import json
import logging
from dataclasses import replace
from functools import partial
from io import BytesIO
from typing import Any

from windtunnel.priceperf.workload.counters import Counters, Spot
from windtunnel_local.service.data import outputs
from windtunnel_local.service.data.checkpoints import store_checkpoints
from windtunnel_local.service.data.compile_cache import store_cache
from windtunnel_local.service.data.merged_folders import Tell
from windtunnel_local.service.ground import lifecycle
from windtunnel_local.service.ground.errors import NoRoom, ObjectError, RunnerError, StoreUnavailable
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.uris import parse_s3
from windtunnel_local.service.observed import backend_lines, metering, step_times
from windtunnel_local.service.running.context import Run

_log = logging.getLogger(__name__)

_LONGEST_REASON = lifecycle.MAX_REASON_CHARACTERS // 2
"""Of the upload's own failure: the script's reason stays in front of it."""
_TOO_MANY_OPEN_FILES = (errno.EMFILE, errno.ENFILE)
"""Errors of too many open files. They pass when other jobs end, so the whole upload is tried again."""


def upload(run: Run, job: Job) -> None:
    """Store the job's outputs. The terminal status comes last, when all logs and metrics are stored."""
    run.usage.forget(job)
    run.begin_anew(job)
    objects, folders = run.ports.objects, run.folders(job)
    model = None
    left_out: list[str] = []
    outputs.make_outputs_readable(job, folders)
    try:
        if job.lifecycle.stop_cause != "requested_late":
            check = partial(run.check_stop, job)
            model = outputs.store_artifacts(job, folders, objects, check, left_out.append)
            store_checkpoints(job, folders, objects, tell=left_out.append)
            store_cache(job, folders, objects)
        _store_counters(run, job, left_out.append)
    except (ObjectError, OSError) as error:
        if isinstance(error, OSError) and error.errno in _TOO_MANY_OPEN_FILES:
            raise StoreUnavailable(f"{error}. Raise the limit of open files: `ulimit -n`.") from error
        _log.exception("Job %s: the upload failed.", job.name)
        what = str(error) if isinstance(error, NoRoom) else f"{type(error).__name__}: {error}"
        text = f"ClientError: Artifact upload failed: {what}"[:_LONGEST_REASON]
        if job.lifecycle.failure_reason is not None:
            room = lifecycle.MAX_REASON_CHARACTERS - len(text) - 1
            text = f"{job.lifecycle.failure_reason[:room]}\n{text}"
        backend_lines.say_once(run.ports, job, left_out)
        run.advance(lifecycle.Failed(text), "Uploading")
        return
    backend_lines.say_once(run.ports, job, left_out)
    found = run.metrics(job).finish()
    event: lifecycle.Event = lifecycle.Succeeded()
    if job.lifecycle.failure_reason is not None:
        event = lifecycle.Failed(job.lifecycle.failure_reason)
    elif job.lifecycle.stop_cause is not None:
        event = lifecycle.Stopped()
    run.advance(event, "Uploading", model_artifact=model, final_metrics=found)


def _store_counters(run: Run, job: Job, tell: Tell) -> None:
    """Store counters.json and steps.json. The container writes the counters: errors in them do not fail the job."""
    folders = run.folders(job)
    try:
        hosts = [
            step_times.HostSteps(
                host,
                metering.read_counters(
                    *(folders.earlier_counters(n, host) for n in range(job.lifecycle.count("Downloading"))),
                    folders.counters(host),
                    tell=tell,
                ),
            )
            for host in job.hosts
        ]
        ranks = [rank for host in hosts for rank in host.ranks]
        counters = metering.measure(job, ranks, _container_times(run, job), run.now())
        documents = {
            "counters.json": json.dumps(_with_attempts(counters, job).to_dict(), indent=2),
            "steps.json": _compact(step_times.steps_document(job.name, hosts)),
        }
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError):
        _log.exception("Job %s: the counters cannot be read; the job has no report.", job.name)
        return
    for name, text in documents.items():
        if text is not None:
            bucket, key = parse_s3(outputs.output_uri(job, "windtunnel", name))
            run.ports.objects.put(bucket, key, BytesIO(text.encode()))


def _compact(document: dict[str, Any] | None) -> str | None:
    return None if document is None else json.dumps(document, separators=(",", ":"))


def _with_attempts(counters: Counters, job: Job) -> Counters:
    """The counters with the number of attempts and, for a spot job, what was simulated and assumed."""
    life, spot = job.lifecycle, None
    if job.spot is not None:
        spot = Spot(
            interruptions_simulated=life.count("Interrupted"),
            interruptions_asked=job.spot.interruptions,
            seed=job.spot.seed,
            discount_assumed=job.spot.discount,
        )
    return replace(counters, attempts=life.count("Downloading"), spot=spot)


def _container_times(run: Run, job: Job) -> metering.ContainerTimes:
    try:
        states = [run.ports.runner.state(job.slot, host) for host in job.hosts]
    except RunnerError:
        return metering.ContainerTimes()
    return metering.ContainerTimes(
        min((s.started_at for s in states if s.started_at), default=None),
        max((s.finished_at for s in states if s.finished_at), default=None),
    )
