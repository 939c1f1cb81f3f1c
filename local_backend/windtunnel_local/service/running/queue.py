"""The queue of jobs that wait for capacity (cores and memory) on this machine: first in, first out.

The queue only counts what each job is expected to need. What a job really uses is limited by its
containers (`plan.memory_limit_bytes`). Nothing here is stored: the jobs' records tell which jobs have
capacity and which wait, so that a new server finds the same order (`Supervisor.resume`).
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from windtunnel.priceperf.instances import GIB
from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.request import plan
from windtunnel_local.service.request.cluster import group_of

_HOST_BYTES = 2 * GIB
_CORE_BYTES = GIB // 2
_NAMED = 3
_LOCAL_CORES = "WINDTUNNEL_LOCAL_CORES"


@dataclass(frozen=True)
class Need:
    """What a job needs: simulated cores, and bytes of memory."""

    cores: int
    memory_bytes: int

    def __add__(self, other: Need) -> Need:
        """The sum of two needs."""
        return Need(self.cores + other.cores, self.memory_bytes + other.memory_bytes)

    def within(self, limit: Need) -> bool:
        """Whether both cores and memory are within ``limit``."""
        return self.cores <= limit.cores and self.memory_bytes <= limit.memory_bytes

    def clipped(self, limit: Need) -> Need:
        """This need, but at most ``limit``: so a job that needs more than the limit can run, alone."""
        return Need(min(self.cores, limit.cores), min(self.memory_bytes, limit.memory_bytes))

    def __str__(self) -> str:
        """The need as text for messages."""
        cores = f"{self.cores} core{'' if self.cores == 1 else 's'}"
        return f"{cores} and {round(self.memory_bytes / GIB, 1):g} GiB"


NOTHING = Need(0, 0)


def need_of(job: Job, config: ServiceConfig) -> Need:
    """What a job's containers need: their simulated cores (a process for each), and memory.

    The memory is an estimate: 2 GiB a host, for libraries and data that are there once, and half a GiB a core,
    for each worker's tensors; at most the container's limit.
    """
    total = NOTHING
    for host in job.hosts:
        instance_cores = group_of(job, host).instance.core_count
        given = str(job.request.get("Environment", {}).get(_LOCAL_CORES, ""))
        asked = int(given) if given.isdecimal() and int(given) else instance_cores
        cores = min(asked, instance_cores)
        limit = plan.memory_limit_bytes(job, config, host)
        total += Need(cores, min(limit, _HOST_BYTES + cores * _CORE_BYTES))
    return total


@dataclass(frozen=True, order=True)
class _Waiting:
    created: datetime
    name: str
    need: Need = field(compare=False)
    wake: Callable[[], None] = field(compare=False)


@dataclass(frozen=True)
class _Parked:
    need: Need
    end: Callable[[], None]


class Queue:
    """Decides which jobs may run. Thread-safe."""

    def __init__(self, config: ServiceConfig) -> None:
        """``max_cores`` and ``max_memory_bytes`` of ``config`` limit all running jobs together."""
        self._config = config
        self._limit = Need(config.max_cores, config.max_memory_bytes)
        self._lock = threading.Lock()
        self._held: dict[str, Need] = {}
        self._line: list[_Waiting] = []
        self._parked: dict[str, _Parked] = {}

    def hold(self, job: Job) -> None:
        """Count as running a job that was admitted before, by an earlier server. Idempotent."""
        with self._lock:
            self._held[job.name] = self._need(job)

    def enter(self, job: Job, wake: Callable[[], None]) -> None:
        """Put a job into the queue, after all jobs created before it. ``wake`` is called when it may be its turn."""
        with self._lock:
            bisect.insort(self._line, _Waiting(job.lifecycle.created, job.name, self._need(job), wake))

    def admit(self, name: str, taking: str | None = None) -> str | None:
        """Admit the job if it is first in the queue and there is capacity; end other warm pools to make room for it.

        ``taking``: the slot of the warm pool that the job may take over; the pool's capacity then counts as free.

        Returns:
            None: the job is admitted and keeps its capacity until `leave`. Otherwise why it waits, for people.
        """
        ended: set[str] = set()
        while True:
            with self._lock:
                waiting = next((each for each in self._line if each.name == name), None)
                if waiting is None:
                    return None
                first = self._line[0] is waiting
                if first and (self._used(taking) + waiting.need).within(self._limit):
                    self._line.remove(waiting)
                    self._held[name] = waiting.need
                    following = self._line[:1]
                    break
                slot = next((slot for slot in self._parked if slot not in (*ended, taking)), None)
                if not first or slot is None:
                    return self._describe(waiting)
                end = self._parked[slot].end
            ended.add(slot)
            end()  # outside of the lock, because it removes containers, and calls `unpark`
        for each in following:
            each.wake()
        return None

    def leave(self, name: str) -> None:
        """Free the job's capacity, or take it out of the queue. Idempotent."""
        with self._lock:
            self._held.pop(name, None)
            self._line = [each for each in self._line if each.name != name]
            following = self._line[:1]
        for each in following:
            each.wake()

    def park(self, pool: Job, end: Callable[[], None]) -> None:
        """Count the capacity of a warm pool's containers as used. Idempotent.

        ``end`` is called when a job needs this capacity: it removes the containers and calls `unpark`.
        """
        with self._lock:
            self._parked[pool.slot] = _Parked(self._need(pool), end)

    def unpark(self, slot: str) -> None:
        """Free the capacity of a warm pool, because it has ended or a job has taken it over. Idempotent."""
        with self._lock:
            self._parked.pop(slot, None)
            following = self._line[:1]
        for each in following:
            each.wake()

    def _need(self, job: Job) -> Need:
        return need_of(job, self._config).clipped(self._limit)

    def _used(self, taking: str | None) -> Need:
        used = NOTHING
        for need in self._held.values():
            used += need
        for slot, parked in self._parked.items():
            if slot != taking:
                used += parked.need
        return used

    def _describe(self, waiting: _Waiting) -> str:
        running = sorted(self._held)
        names = ", ".join(running[:_NAMED]) + (", ..." if len(running) > _NAMED else "")
        before = self._line.index(waiting)
        return (
            f"Training job waiting for capacity: it needs {waiting.need}, and all jobs together get"
            f" {self._limit} here; running: {len(running)} ({names}), waiting before it: {before}"
        )
