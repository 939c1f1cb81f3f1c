"""The state of all Slurm jobs, from one call for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from windtunnel_local.runner.slurm.commands import Slurm, SlurmJob
from windtunnel_local.service.ground.errors import RunnerUnavailable


class QueueView:
    """The queue as squeue last showed it. Safe from several threads."""

    def __init__(self, slurm: Slurm) -> None:
        self._slurm = slurm
        self._lock = threading.Lock()
        self._jobs: Mapping[int, SlurmJob] = {}
        self.asked: float | None = None
        """When squeue was asked, by the monotonic clock. Jobs submitted later are not in it."""
        self._error: RunnerUnavailable | None = None
        self._failed = 0.0
        self.known = False
        """Whether Slurm has answered before."""

    def look(self, age_s: float) -> Mapping[int, SlurmJob]:
        """The jobs by number, as they were ``age_s`` ago at most. Blocks if Slurm must be asked for that.

        Raises:
            RunnerUnavailable: it does not answer, or did not so short a time ago.
        """
        away = self._error
        if not self._lock.acquire(blocking=away is None) and away is not None:
            raise away  # another thread asks whether it is back
        try:
            # Commands give up after half a minute. Those that waited for this one would ask, and wait, in turn.
            if self._error is not None and time.monotonic() - self._failed <= age_s:
                raise self._error
            if self.asked is None or time.monotonic() - self.asked > age_s:
                self.asked = time.monotonic()
                try:
                    self._jobs = {job.number: job for job in self._slurm.jobs()}
                    self._error, self.known = None, True
                except RunnerUnavailable as error:
                    self._error, self._failed = error, time.monotonic()
            if self._error is not None:
                raise self._error
            return self._jobs
        finally:
            self._lock.release()
