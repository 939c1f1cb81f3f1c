"""All reads and changes of jobs' records go through here."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from windtunnel_local.service.ground import warm_pool_states
from windtunnel_local.service.ground.errors import JobNotFound
from windtunnel_local.service.ground.job import Job, SecondaryStatus
from windtunnel_local.service.ground.lifecycle import Event, advance
from windtunnel_local.service.ground.ports import Clock, Store


class Overtaken(Exception):
    """The job's status has changed meanwhile, mostly because it was stopped."""


class JobRecords:
    """The records of all jobs; only one is changed at a time. Thread-safe."""

    def __init__(self, store: Store, clock: Clock) -> None:
        """``store`` keeps the records, ``clock`` gives the time of each change."""
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()

    def get(self, name: str) -> Job:
        """The record; raises ``JobNotFound``."""
        job = self._store.get_job(name)
        if job is None:
            raise JobNotFound
        return job

    def amend(self, name: str, change: Callable[[Job], Job]) -> Job:
        """Change a job's record and return it; `advance` changes the lifecycle. Raises ``JobNotFound``."""
        with self._lock:
            job = self.get(name)
            changed = change(job)
            if changed != job:
                self._store.update_job(changed)
            return changed

    def advance(
        self,
        name: str,
        event: Event,
        expected: SecondaryStatus | None = None,
        at: datetime | None = None,
        **changes: Any,
    ) -> Job:
        """Apply an event to a job's lifecycle and ``changes`` to its other fields, and store both.

        ``at``: the job's time (see `Run.now`); None: the wall clock's.

        Raises:
            Overtaken: the job's secondary status is not ``expected``.
            IllegalTransition: the job's status does not allow the event.
        """

        def change(job: Job) -> Job:
            if expected is not None and job.lifecycle.secondary != expected:
                raise Overtaken
            now = self._clock.now()
            changed = replace(job, lifecycle=advance(job.lifecycle, event, at or now), **changes)
            return warm_pool_states.at_end(changed, now)

        return self.amend(name, change)

    def forget(self, name: str, check: Callable[[Job], None]) -> None:
        """Remove a job's record. ``check`` gets the record before; if it raises, nothing is removed.

        Raises:
            JobNotFound: no such job.
        """
        with self._lock:
            check(self.get(name))
            self._store.delete_job(name)
