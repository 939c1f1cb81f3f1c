"""Warm pools: containers kept for a next job, which job takes them over, and when they end.

A pool's state is in the record of the job that left it (`ground.warm_pool_states`) and nowhere
else, so that a new server finds all pools. One thread ends pools: when their keep-alive period has
passed, when one of their containers has ended, when the server is told to shut down. If the server
is killed, the pools wait for the next server, and end by themselves when their period has passed.
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
    """All warm pools of a backend. Thread-safe."""

    def __init__(self, ports: Ports, records: JobRecords, queue: Queue) -> None:
        """Starts nothing yet; `resume` finds the pools that an earlier server left."""
        self._ports = ports
        self._records = records
        self._queue = queue
        self._lock = threading.RLock()
        self._jobs_with_pool: set[str] = set()
        """The names of jobs whose pool is Available."""
        self._until: dict[str, float] = {}
        """By job: the end that its pool's containers were last told, in Unix seconds."""
        self._unsettled: set[str] = set()
        """Jobs whose pool an earlier server left without making it ready."""
        self._vacated: Counter[str] = Counter()
        """The slots whose containers and folders are being removed."""
        self._woken = threading.Event()
        self._shutting_down = False
        self._thread: threading.Thread | None = None

    # --- a job's beginning ---

    def new_slot(self, name: str) -> str:
        """The slot of a new job: its name, unless the containers of a deleted job with this name are still in use."""
        # Without the lock, which may be held during a slow call to the engine. Three reads, because a slot that passes
        # between a pool and a job in this moment is seen in at least one of them.
        used = {pool.slot for pool in self._available()}
        used |= {job.slot for job in self._ports.store.unfinished_jobs()}
        used |= {pool.slot for pool in self._available()}
        return _unused_slot(name) if name in used or name in self._vacated else name

    def candidate(self, job: Job) -> str | None:
        """The slot of a pool that, by the records, the job can take over; `claim` may decide otherwise."""
        return next((pool.slot for pool in self._matching(job)), None)

    def claim(self, name: str, leaving: threading.Event) -> Job:
        """Let the job take over a pool that matches, if there is one; return the job's record. Repeatable.

        Waits for a pool that is being made ready: this takes less time than a cold start.
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
        """Give the job new containers, because those it took over have ended meanwhile. Repeatable."""
        self._remove(job.slot)
        pool = job.warm_pool and replace(job.warm_pool, begins={}, launched_us=None)
        return self._with_own_slot(
            self._records.amend(job.name, lambda now: replace(now, slot=now.name, warm_pool=pool))
        )

    # --- a job's end ---

    def settle(self, job: Job) -> bool:
        """Make the containers of a job that has ended ready for the next job; return whether they are kept.

        If not, the caller removes them. Repeatable.
        """
        with self._lock:
            if job.warm_pool is None or job.warm_pool.status != "Available":
                return False
            self._jobs_with_pool.add(job.name)
        containers = plan.plan_job(job, self._ports.config)
        try:
            fit = self._ports.runner.retain(containers, warm_pool_states.until(job))
        except RunnerError as error:
            _log.warning("The warm pool of job %s cannot be kept: %s", job.name, error)
            fit = False
        if (
            self._shutting_down
            or not fit
            or not warm_pool_folders.empty(job, self._ports.config.paths(job.slot), containers)
        ):
            self._record_end(job.name)
            self._jobs_with_pool.discard(job.name)
            return False
        with self._lock:
            name = job.name
            job = self._records.amend(
                name, lambda now: replace(now, warm_pool=warm_pool_states.made_ready(now.warm_pool))
            )
            if job.warm_pool is None or not job.warm_pool.ready:
                return False  # the pool has ended meanwhile
            self._until[name] = warm_pool_states.until(job).timestamp()
            self._park(job)
        self.wake()
        return True

    def end(self, name: str) -> None:
        """End the pool that a job has left, if it is still Available: first in the record, then the containers."""
        with ExitStack() as vacated:
            with self._lock:
                job = self._record_end(name)
                if job is None:
                    return
                vacated.enter_context(self.vacating(job.slot))
            self._remove(job.slot)
        self._queue.unpark(job.slot)
        self._jobs_with_pool.discard(name)  # last, so that `busy` is true until the containers are removed

    # --- the server's life ---

    def resume(self) -> None:
        """Find the pools that an earlier server left. Call once, before any job starts."""
        taken = {job.slot: job for job in self._ports.store.unfinished_jobs() if plan.has_taken_over(job)}
        for pool in list(self._available()):
            if pool.slot in taken:  # the earlier server died after the first of `_take_over`'s two records
                self._mark_reused(taken[pool.slot])
                continue
            self._jobs_with_pool.add(pool.name)
            self._park(pool)
            if pool.warm_pool is not None and not pool.warm_pool.ready:
                self._unsettled.add(pool.name)
        self.wake()

    def slots(self, besides: str = "") -> set[str]:
        """The slots of unfinished jobs and Available pools, read under the lock, so that no take-over is missed.

        ``besides``: a job whose own slot is left out.
        """
        with self._lock:
            unfinished = {job.slot for job in self._ports.store.unfinished_jobs() if job.name != besides}
            return unfinished | {pool.slot for pool in self._available()}

    @contextmanager
    def vacating(self, slot: str) -> Iterator[None]:
        """Give the slot to no new job while the block runs, which removes its containers and folder."""
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
        """Whether a pool is kept; the server then stays, because its thread must end the pool in time."""
        return bool(self._jobs_with_pool)

    def wake(self) -> None:
        """Make the thread check all pools now; start it if it does not run."""
        self._woken.set()
        with self._lock:
            if self._thread is None and self._jobs_with_pool and not self._shutting_down:
                self._thread = threading.Thread(target=self._watch, name="warm pools", daemon=True)
                self._thread.start()

    def shutdown(self) -> None:
        """End all pools, because a user who shuts the server down wants no containers left. Blocks for seconds."""
        with self._lock:
            self._shutting_down = True
            thread = self._thread
        self._woken.set()
        if thread is not None:
            thread.join(_LEAVE_PATIENCE_S)

    # --- inside ---

    def _watch(self) -> None:
        """End each pool in time; return when no pool is left."""
        first = True
        while True:
            self._woken.wait(None if first else self._ports.config.pace.tick_s * 2)
            self._woken.clear()
            first = False
            # Read first, so that all pools are checked once more after the shutdown began.
            left = self._shutting_down
            try:
                for name in list(self._jobs_with_pool):
                    self._look_after(name)
            except Exception:  # noqa: BLE001 - at shutdown the store may be closed already
                if not self._shutting_down:
                    _log.exception("Warm pools are looked at again later.")
            with self._lock:
                if left or not self._jobs_with_pool:
                    self._thread = None
                    return

    def _look_after(self, name: str) -> None:
        job = self._left_by(name)
        if job is None:
            self._jobs_with_pool.discard(name)
            return
        if self._shutting_down or self._ports.clock.now() >= warm_pool_states.until(job):
            self.end(name)
            return
        if job.warm_pool is not None and not job.warm_pool.ready:  # the job's own thread does this
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
        """Tell a pool's containers until when they are kept; do nothing if a job has just taken them over."""
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
        """The job's record, if its pool is Available; otherwise None."""
        job = self._ports.store.get_job(name)
        return job if job and job.warm_pool and job.warm_pool.status == "Available" else None

    def _matching(self, job: Job) -> Iterator[Job]:
        if not self._ports.runner.keeps_containers:
            return
        now = self._ports.clock.now()
        for pool in self._available():
            # A deleted job of the same name may have left a slot that would look like the job's own: skip it.
            foreign = plan.has_taken_over(replace(job, slot=pool.slot))
            if foreign and now < warm_pool_states.until(pool) and warm_pool_states.matches(pool, job):
                yield pool

    def _fits(self, pool: Job, job: Job) -> bool:
        try:
            return self._ports.runner.fits(plan.plan_job(replace(job, slot=pool.slot), self._ports.config))
        except RunnerError:
            return False

    def _take_over(self, pool: Job, job: Job) -> Job:
        """Record the take-over: first in the unfinished job, then in the pool's. After a crash in between, `resume`
        completes it.
        """
        state = pool.warm_pool or WarmPool("Available")
        cursors = {host: self._ports.store.log_cursor(pool.stream(host)) for host in job.hosts}
        # For a job that printed nothing, the cursor at which it began still holds.
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
                self._jobs_with_pool.discard(pool.name)
        self._queue.unpark(by.slot)

    def _with_own_slot(self, job: Job) -> Job:
        """Give the job another slot if its own is in use: by containers of a deleted job that had the same name.

        The job would take them for its own.
        """
        taken = self.slots(besides=job.name) | set(self._vacated)
        try:
            taken |= self._ports.runner.jobs()
        except RunnerError:  # the engine cannot be asked: take a slot that was never used before
            taken.add(job.slot)
        if job.slot not in taken:
            return job
        slot = _unused_slot(job.name)
        return self._records.amend(job.name, lambda now: replace(now, slot=slot))

    def _record_end(self, name: str) -> Job | None:
        """Record that the job's pool has ended; return the job, or None if the pool had ended already."""
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


def _unused_slot(name: str) -> str:
    """A slot that no job has had before."""
    return f"{name}.{uuid.uuid4().hex[:8]}"
