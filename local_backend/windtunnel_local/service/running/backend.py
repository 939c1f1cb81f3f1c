"""The ports that running a job needs, in one hand; and the one way to change a job's record."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

from windtunnel_local.service.config import ServiceConfig
from windtunnel_local.service.errors import JobNotFound
from windtunnel_local.service.lifecycle import Event, advance
from windtunnel_local.service.model import Job, SecondaryStatus
from windtunnel_local.service.ports import Clock, ObjectStore, Runner, Store


class Overtaken(Exception):
    """The job has moved on meanwhile: somebody stopped it."""


class Leaving(Exception):
    """The server goes down; the job is left as it is, for the next server to adopt."""


@dataclass(frozen=True)
class Backend:
    """Ports and settings. Safe from several threads."""

    store: Store
    runner: Runner
    objects: ObjectStore
    clock: Clock
    config: ServiceConfig
    tick_s: float = 0.25
    """How often a waiting thread looks at the clock and the record."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def now_ms(self) -> int:
        """Unix milliseconds."""
        return int(self.clock.now().timestamp() * 1000)

    def job(self, name: str) -> Job:
        """The record; raises ``JobNotFound``."""
        job = self.store.get_job(name)
        if job is None:
            raise JobNotFound
        return job

    def advance(
        self, name: str, event: Event, expected: SecondaryStatus | None = None, **changes: Any
    ) -> Job:
        """Apply an event to the stored job, durably, together with other ``changes``.

        Raises:
            Overtaken: the job is no longer in the state ``expected``.
            IllegalTransition: the event is not allowed.
        """
        with self._lock:
            job = self.job(name)
            if expected is not None and job.lifecycle.secondary != expected:
                raise Overtaken
            changed = replace(job, lifecycle=advance(job.lifecycle, event, self.clock.now()), **changes)
            if changed != job:
                self.store.update_job(changed)
            return changed
