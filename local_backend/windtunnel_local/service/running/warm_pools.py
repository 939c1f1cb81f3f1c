"""Warm pools: containers that wait for a next job, who takes them over, and who ends them.

A pool is what the record of the job that left it says (`ground.warm_pool_states`): nothing else is
remembered, so a new server finds what there is. One thread ends pools: when their period has
passed, when a container of them has ended, when the server is told to leave. If the server is
killed instead, they wait for the next one, and end by themselves when their period has passed.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from windtunnel_local.service.data import warm_pool_folders
from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.ground import warm_pool_states
from windtunnel_local.service.ground.errors import JobNotFound, RunnerError
from windtunnel_local.service.ground.job import Job, JobQuery, WarmPool
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.request import plan
from windtunnel_local.service.running.job_records import JobRecords
from windtunnel_local.service.running.queue import Queue

_log = logging.getLogger(__name__)

_PAGE = 100
_SETTLING_PATIENCE_S = 20.0
_SETTLING_POLL_S = 0.02
_LEAVE_PATIENCE_S = 5.0


class WarmPools:
    """All pools of a backend. Safe from several threads."""

    def __init__(self, ports: Ports, records: JobRecords, queue: Queue) -> None:
        """Nothing runs yet; `resume` finds what an earlier server left."""
        self._ports = ports
        self._records = records
        self._queue = queue
        self._lock = threading.RLock()
        self._names: set[str] = set()
        """Jobs whose pool is Available."""
        self._until: dict[str, float] = {}
        """What their containers were told, to see a change."""
        self._unsettled: set[str] = set()
        """Of these, what an earlier server did not come to make ready."""
        self._vacated: Counter[str] = Counter()
        """Slots whose containers and folders are being removed."""
        self._woken = threading.Event()
        self._left = False
        self._thread: threading.Thread | None = None

    # --- a job's beginning ---

    def new_slot(self, name: str) -> str:
        """The slot of a new job: its name, unless a job of that name was deleted and another runs in its containers."""
        # Without the lock, which may be held while an engine is asked. Whatever goes from a pool to a job and back is
        # seen in one of three looks.
        used = {pool.slot for pool in self._available()}
        used |= {job.slot for job in self._ports.store.unfinished_jobs()}
        used |= {pool.slot for pool in self._available()}
        return _other_slot(name) if name in used or name in self._vacated else name

    def candidate(self, job: Job) -> str | None:
        """The slot that the job would take over, by the records; cheap, and no promise."""
        return next((pool.slot for pool in self._matching(job)), None)

    def claim(self, name: str, leaving: threading.Event) -> Job:
        """Give the job a pool that matches, if there is one; returns its record. Repeatable.

        A pool that is just being made ready is waited for: it takes less than to start cold.
        """
        deadline = time.monotonic() + _SETTLING_PATIENCE_S
        while True:
            with self._lock:
                job = self._records.get(name)
                if plan.has_taken_over(job):
                    self._mark_reused(job)
                    return job
                if job.lifecycle.training_start is not None:
                    return job  # a further attempt
                pools = list(self._matching(job))
                for pool in pools:
                    if pool.warm_pool and pool.warm_pool.ready and self._fits(pool, job):
                        return self._take_over(pool, job)
                settling = any(pool.warm_pool and not pool.warm_pool.ready for pool in pools)
                if not settling or time.monotonic() > deadline:
                    return self._with_own_slot(job)
            if leaving.wait(_SETTLING_POLL_S):
                return job

    def start_cold(self, job: Job) -> Job:
        """The containers that the job took over have ended meanwhile: it gets its own. Repeatable."""
        self._remove(job.slot)
        pool = job.warm_pool and replace(job.warm_pool, begins={}, launched_us=None)
        return self._with_own_slot(
            self._records.amend(job.name, lambda now: replace(now, slot=now.name, warm_pool=pool))
        )

    # --- a job's end ---

    def settle(self, job: Job) -> bool:
        """Make the containers of a job that has ended ready for the next one; whether they are kept.

        False: they are still there, for the caller to remove. Repeatable.
        """
        with self._lock:
            if job.warm_pool is None or job.warm_pool.status != "Available":
                return False
            self._names.add(job.name)
        containers = plan.plan_job(job, self._ports.config)
        try:
            fit = self._ports.runner.retain(containers, warm_pool_states.until(job))
        except RunnerError as error:
            _log.warning("The warm pool of job %s cannot be kept: %s", job.name, error)
            fit = False
        if (
            self._left
            or not fit
            or not warm_pool_folders.empty(job, self._ports.config.paths(job.slot), containers)
        ):
            self._record_end(job.name)
            self._names.discard(job.name)
            return False
        with self._lock:
            name = job.name
            job = self._records.amend(
                name, lambda now: replace(now, warm_pool=warm_pool_states.made_ready(now.warm_pool))
            )
            if job.warm_pool is None or not job.warm_pool.ready:
                return False  # ended meanwhile
            self._until[name] = warm_pool_states.until(job).timestamp()
            self._park(job)
        self.wake()
        return True

    def end(self, name: str) -> None:
        """End the pool that a job has left, if it is still there: the record, then the containers."""
        with ExitStack() as vacated:
            with self._lock:
                job = self._record_end(name)
                if job is None:
                    return
                vacated.enter_context(self.vacating(job.slot))
            self._remove(job.slot)
        self._queue.unpark(job.slot)
        self._names.discard(name)  # last: until then the server is busy

    # --- the server's life ---

    def resume(self) -> None:
        """Find the pools that an earlier server left. Call once, before any job starts."""
        taken = {job.slot: job for job in self._ports.store.unfinished_jobs() if plan.has_taken_over(job)}
        for pool in list(self._available()):
            if pool.slot in taken:  # it died between the two records
                self._mark_reused(taken[pool.slot])
                continue
            self._names.add(pool.name)
            self._park(pool)
            if pool.warm_pool is not None and not pool.warm_pool.ready:
                self._unsettled.add(pool.name)
        self.wake()

    def slots(self, besides: str = "") -> set[str]:
        """The slots of unfinished jobs, and of pools that wait for one; none is on its way from one to the other.

        ``besides``: a job whose own is left out.
        """
        with self._lock:
            unfinished = {job.slot for job in self._ports.store.unfinished_jobs() if job.name != besides}
            return unfinished | {pool.slot for pool in self._available()}

    @contextmanager
    def vacating(self, slot: str) -> Iterator[None]:
        """No job that comes now gets the slot: what is left there is removed."""
        with self._lock:
            self._vacated[slot] += 1
        try:
            yield
        finally:
            with self._lock:
                self._vacated[slot] -= 1
                if not self._vacated[slot]:
                    del self._vacated[slot]

    def busy(self) -> bool:
        """Whether containers are kept: a server that left would leave nobody to end them in time."""
        return bool(self._names)

    def wake(self) -> None:
        """Look at all pools now: something has changed."""
        self._woken.set()
        with self._lock:
            if self._thread is None and self._names and not self._left:
                self._thread = threading.Thread(target=self._watch, name="warm pools", daemon=True)
                self._thread.start()

    def shutdown(self) -> None:
        """End all pools: nobody who tells a server to leave wants its containers to stay. Blocks for seconds."""
        with self._lock:
            self._left = True
            thread = self._thread
        self._woken.set()
        if thread is not None:
            thread.join(_LEAVE_PATIENCE_S)

    # --- inside ---

    def _watch(self) -> None:
        """End what is over, until there is none left."""
        first = True
        while True:
            self._woken.wait(None if first else self._ports.config.pace.tick_s * 2)
            self._woken.clear()
            first = False
            left = self._left  # once more after that was said
            try:
                for name in list(self._names):
                    self._look_after(name)
            except Exception:  # noqa: BLE001 - a store that is closed while leaving is no news
                if not self._left:
                    _log.exception("Warm pools are looked at again later.")
            with self._lock:
                if left or not self._names:
                    self._thread = None
                    return

    def _look_after(self, name: str) -> None:
        job = self._left_by(name)
        if job is None:
            self._names.discard(name)
            return
        if self._left or self._ports.clock.now() >= warm_pool_states.until(job):
            self.end(name)
            return
        if job.warm_pool is not None and not job.warm_pool.ready:  # in general the thread of its job is at it
            if name in self._unsettled:
                if not self.settle(job):
                    with self.vacating(job.slot):
                        self._remove(job.slot)
                    self._queue.unpark(job.slot)
                self._unsettled.discard(name)
            return
        try:
            states = {self._ports.runner.state(job.slot, host).status for host in job.hosts}
            if states != {"created"}:
                _log.info("The warm pool of job %s is gone: %s.", name, ", ".join(sorted(states)))
                self.end(name)
            elif self._until.get(name) != warm_pool_states.until(job).timestamp():
                self._tell_until(name)
        except RunnerError as error:
            _log.warning("The warm pool of job %s is out of sight: %s", name, error)

    def _tell_until(self, name: str) -> None:
        """Tell a pool's containers until when they are kept; not those of a job that has just taken it over."""
        with self._lock:
            job = self._left_by(name)
            if job is None:
                return
            self._ports.runner.retain(plan.plan_job(job, self._ports.config), warm_pool_states.until(job))
            self._until[name] = warm_pool_states.until(job).timestamp()

    def _park(self, pool: Job) -> None:
        name = pool.name
        self._queue.park(pool, lambda: self.end(name))

    def _available(self) -> Iterator[Job]:
        token = None
        while True:
            query = JobQuery(warm_pool_status="Available", limit=_PAGE, token=token)
            summaries, token = self._ports.store.list_jobs(query)
            for summary in summaries:
                if (job := self._left_by(summary.name)) is not None:
                    yield job
            if token is None:
                return

    def _left_by(self, name: str) -> Job | None:
        """The job that has left a pool, as it is recorded now; None: it has not, or the pool is over or taken."""
        job = self._ports.store.get_job(name)
        return job if job and job.warm_pool and job.warm_pool.status == "Available" else None

    def _matching(self, job: Job) -> Iterator[Job]:
        if not self._ports.runner.keeps_containers:
            return
        now = self._ports.clock.now()
        for pool in self._available():
            # A slot that is named for the job, of a deleted one of its name, would look like one of its own.
            foreign = plan.has_taken_over(replace(job, slot=pool.slot))
            if foreign and now < warm_pool_states.until(pool) and warm_pool_states.matches(pool, job):
                yield pool

    def _fits(self, pool: Job, job: Job) -> bool:
        try:
            return self._ports.runner.fits(plan.plan_job(replace(job, slot=pool.slot), self._ports.config))
        except RunnerError:
            return False

    def _take_over(self, pool: Job, job: Job) -> Job:
        """Change the records of both jobs, in this order: after a crash in between, the unfinished job has the pool."""
        state = pool.warm_pool or WarmPool("Available")
        cursors = {host: self._ports.store.log_cursor(pool.stream(host)) for host in job.hosts}
        # A job that printed nothing has left the log where it found it.
        begins = {host: cursor for host, cursor in cursors.items() if cursor}
        mine = warm_pool_states.took_over(state, {**state.begins, **begins})
        taken = self._records.amend(job.name, lambda now: replace(now, slot=pool.slot, warm_pool=mine))
        self._mark_reused(taken)
        return taken

    def _mark_reused(self, by: Job) -> None:
        now = self._ports.clock.now()
        for pool in list(self._available()):
            if pool.slot == by.slot and pool.name != by.name:
                self._records.amend(pool.name, lambda job: warm_pool_states.reused(job, by.name, now))
                self._names.discard(pool.name)
        self._queue.unpark(by.slot)

    def _with_own_slot(self, job: Job) -> Job:
        """A slot may have outlived the job it is named for, and a new job may have that name again.

        Containers that could not be removed are the job's before, and would be taken for its own.
        """
        taken = self.slots(besides=job.name) | set(self._vacated)
        try:
            taken |= self._ports.runner.jobs()
        except RunnerError:  # no engine that could tell: a slot that nobody can ever have had
            taken.add(job.slot)
        if job.slot not in taken:
            return job
        slot = _other_slot(job.name)
        return self._records.amend(job.name, lambda now: replace(now, slot=slot))

    def _record_end(self, name: str) -> Job | None:
        """Record that the job's pool has ended; returns the job, None if the pool was over already."""
        with self._lock:
            self._until.pop(name, None)
            now = self._ports.clock.now()
            try:
                before = self._records.get(name)
                after = self._records.amend(name, lambda job: warm_pool_states.terminated(job, now))
            except JobNotFound:
                return None
            return after if after.warm_pool != before.warm_pool else None

    def _remove(self, slot: str) -> None:
        try:
            self._ports.runner.remove(slot)
        except RunnerError as error:
            _log.warning("The containers of %s are not removed yet: %s", slot, error)
        remove_tree(self._ports.config.paths(slot).root)


def _other_slot(name: str) -> str:
    """One that nobody has ever had."""
    return f"{name}.{uuid.uuid4().hex[:8]}"
