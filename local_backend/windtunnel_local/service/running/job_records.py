"""The one way to read and to change a job's record."""

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
    """The job has moved on meanwhile: somebody stopped it."""


class JobRecords:
    """All jobs' records: one change at a time. Safe from several threads."""

    def __init__(self, store: Store, clock: Clock) -> None:
        """``store``: where they are. ``clock``: gives each change its time."""
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
        """Change a job; returns it. Its lifecycle is `advance`'s to change. Raises ``JobNotFound``."""
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
        """Apply an event to a job, durably, together with other ``changes``. ``at``: the job's time; None: now.

        Raises:
            Overtaken: the job is no longer in the state ``expected``.
            IllegalTransition: the event is not allowed.
        """

        def change(job: Job) -> Job:
            if expected is not None and job.lifecycle.secondary != expected:
                raise Overtaken
            now = self._clock.now()
            changed = replace(job, lifecycle=advance(job.lifecycle, event, at or now), **changes)
            return warm_pool_states.at_end(changed, now)

        return self.amend(name, change)

    def forget(self, name: str, check: Callable[[Job], None]) -> None:
        """Remove a job. ``check`` raises to keep it; it sees the record that would go.

        Raises:
            JobNotFound: no such job.
        """
        with self._lock:
            check(self.get(name))
            self._store.delete_job(name)
