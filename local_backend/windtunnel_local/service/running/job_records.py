"""The ports that running a job needs, in one hand; and the one way to change a job's record."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from windtunnel_local.service.ground import warm_pool_states
from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.errors import JobNotFound
from windtunnel_local.service.ground.job import Job, SecondaryStatus
from windtunnel_local.service.ground.lifecycle import Event, advance
from windtunnel_local.service.ground.ports import Clock, ObjectStore, Runner, Store
from windtunnel_local.service.running.queue import Need, Queue
from windtunnel_local.service.running.warm_pools import WarmPools


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
    queue: Queue = field(init=False)
    """Who may run."""
    pools: WarmPools = field(init=False)
    """Containers that wait for a next job."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """The queue has the room that the settings give to all jobs."""
        object.__setattr__(self, "queue", Queue(Need(self.config.max_cores, self.config.max_memory_bytes)))
        object.__setattr__(self, "pools", WarmPools(self))

    def now_ms(self) -> int:
        """Unix milliseconds."""
        return int(self.clock.now().timestamp() * 1000)

    def job(self, name: str) -> Job:
        """The record; raises ``JobNotFound``."""
        job = self.store.get_job(name)
        if job is None:
            raise JobNotFound
        return job

    def amend(self, name: str, change: Callable[[Job], Job]) -> Job:
        """Change the stored job in what is not its lifecycle; returns it. Raises ``JobNotFound``."""
        with self._lock:
            job = self.job(name)
            changed = change(job)
            if changed != job:
                self.store.update_job(changed)
            return changed

    def forget(self, name: str, check: Callable[[Job], None]) -> None:
        """Remove the stored job. ``check`` raises to keep it; it sees the record that would go.

        Raises:
            JobNotFound: no such job.
        """
        with self._lock:
            check(self.job(name))
            self.store.delete_job(name)

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
            now = self.clock.now()
            changed = replace(job, lifecycle=advance(job.lifecycle, event, now), **changes)
            changed = warm_pool_states.at_end(changed, now)
            if changed != job:
                self.store.update_job(changed)
            return changed
