"""Stores a job's checkpoints in S3 while it trains, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from windtunnel_local.service.data.checkpoints import Checkpoints, checkpoint_uri
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.running.context import Run

_log = logging.getLogger(__name__)


class Sync:
    """The state of the thread that stores checkpoints."""

    stored_at: datetime | None = None
    """When the first checkpoint of this attempt was stored; None: none yet."""


@contextmanager
def checkpoints_synced(run: Run, job: Job) -> Iterator[Sync]:
    """Store checkpoints while the block runs. At its end the thread has ended; the next step stores the rest.

    A file that cannot be stored is tried again. If it fails to the end, the upload at the job's end reports the error.
    """
    state = Sync()
    if checkpoint_uri(job) is None:
        yield state
        return
    ended = threading.Event()
    checkpoints = Checkpoints(job, run.folders(job), run.ports.objects)

    def sync() -> None:
        told = False
        while not ended.wait(run.ports.config.pace.checkpoints_s):
            try:
                stored = checkpoints.store_settled(ended.is_set)
                told = False
                if stored and state.stored_at is None:
                    state.stored_at = run.now()
            except Exception as error:  # noqa: BLE001 - logged once, and tried again
                if not told:
                    _log.warning("Job %s: its checkpoints are not stored now: %s", job.name, error)
                told = True

    thread = threading.Thread(target=sync, name=f"checkpoints {job.name}", daemon=True)
    thread.start()
    try:
        yield state
    finally:
        ended.set()
        thread.join()
