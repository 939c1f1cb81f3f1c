"""All running training jobs: a thread for each, started with the job, or when a new server adopts it."""

from __future__ import annotations

import logging
import threading

from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.ground.errors import OutOfThreads, RunnerError, RunnerUnavailable
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.lifecycle import StopRequested
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.hosting.records import instance_slots
from windtunnel_local.service.job_run import JobRun
from windtunnel_local.service.running.context import Run
from windtunnel_local.service.running.job_records import JobRecords
from windtunnel_local.service.running.queue import Queue
from windtunnel_local.service.running.warm_pools import WarmPools

_log = logging.getLogger(__name__)

_LEAVE_PATIENCE_S = 5.0
_SWEEP_AGAIN_S = 1.0
_LONGEST_SWEEP_PAUSE_S = 30.0


class Supervisor:
    """Starts, adopts and stops jobs. Thread-safe; no call waits for a training script."""

    def __init__(self, ports: Ports, records: JobRecords) -> None:
        """Starts nothing yet; `resume` adopts the jobs that an earlier server left."""
        self._ports = ports
        self._records = records
        self._queue = Queue(ports.config)
        self._pools = WarmPools(ports, records, self._queue)
        self._lock = threading.Lock()
        self._runs: dict[str, tuple[JobRun, threading.Thread]] = {}
        self._left = False
        self._leaving = threading.Event()
        self._sweep: threading.Thread | None = None

    def new_slot(self, name: str) -> str:
        """A slot for a new job: the name of its containers and folder. No other job uses it."""
        return self._pools.new_slot(name)

    def start(self, job: Job) -> None:
        """Start the thread of a recorded, unfinished job, which goes on from the job's current status. Idempotent.

        Raises:
            OutOfThreads: the thread could not be started; nothing has begun.
        """
        name = job.name
        with self._lock:
            if self._left or name in self._runs:
                return
            run = JobRun(Run(name, self._ports, self._records, self._queue, self._pools))
            self._line_up(job, run)
            # A daemon thread, so that a job does not keep the process alive after a shutdown.
            thread = threading.Thread(target=self._run, args=(name, run), name=f"job {name}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                self._queue.leave(name)
                raise OutOfThreads from error
            self._runs[name] = (run, thread)

    def stop(self, name: str) -> None:
        """Ask a job to stop; return once the request to stop is recorded.

        Raises:
            JobNotFound: no such job.
            IllegalTransition: the job has ended.
        """
        with self._lock:
            run = self._runs.get(name)
        job = self._records.advance(name, StopRequested(), at=run[0].now() if run else None)
        if run is None:
            self.start(job)
        else:
            run[0].wake()

    def updated(self, name: str) -> None:
        """Wake the job's thread and the warm pools: the user has changed the job's record."""
        with self._lock:
            run = self._runs.get(name)
        if run is not None:
            run[0].wake()
        self._pools.wake()

    def resume(self) -> None:
        """Adopt every unfinished job, and remove what finished jobs left behind. Call once, before serving."""
        self._pools.resume()
        unfinished = self._ports.store.unfinished_jobs()
        for job in unfinished:  # first, so that no waiting job takes the room of a running one
            if _was_let_in(job):
                self._queue.hold(job)
        for job in unfinished:
            _log.info("Job %s is adopted.", job.name)
            self.start(job)
        sweep = threading.Thread(target=self._sweep_up, name="sweep", daemon=True)
        sweep.start()
        self._sweep = sweep

    def busy(self) -> bool:
        """Whether any job runs or is being cleaned up, or a warm pool is kept."""
        with self._lock:
            return bool(self._runs) or self._pools.busy()

    def await_clean_up(self, name: str) -> bool:
        """Wait until a finished job is cleaned up. Most are already, so that this returns at once.

        Returns:
            Whether it is cleaned up; False: its containers cannot be removed now, mostly because the engine is away.
        """
        with self._lock:
            run = self._runs.get(name)
        if run is not None:
            run[1].join(self._ports.config.pace.clean_up_s)
        return run is None or not run[1].is_alive()

    def shutdown(self) -> None:
        """Stop watching all jobs; their containers run on, and the next server adopts them. Blocks for
        seconds at most. Idempotent.
        """
        self._leaving.set()
        with self._lock:
            self._left = True
            runs = list(self._runs.values())
        for run, _ in runs:
            run.leave()
        for _, thread in runs:
            thread.join(_LEAVE_PATIENCE_S)
        self._pools.shutdown()
        if self._sweep is not None:
            self._sweep.join(_LEAVE_PATIENCE_S)

    def _line_up(self, job: Job, run: JobRun) -> None:
        """Reserve the job's capacity again if it had been admitted before, or put it into the queue."""
        if _was_let_in(job):
            self._queue.hold(job)
        elif job.lifecycle.secondary in ("Starting", "Pending"):
            self._queue.enter(job, run.wake)

    def _run(self, name: str, run: JobRun) -> None:
        try:
            run.run()
        finally:
            self._queue.leave(name)
            with self._lock:
                self._runs.pop(name, None)

    def _sweep_up(self) -> None:
        """Remove leftovers; try again until the engine is there and all are gone."""
        pause_s = _SWEEP_AGAIN_S
        while not self._remove_leftovers():
            if self._leaving.wait(pause_s):
                return
            pause_s = min(2 * pause_s, _LONGEST_SWEEP_PAUSE_S)

    def _remove_leftovers(self) -> bool:
        """Remove containers and folders of jobs that have ended, and of jobs and endpoints without a record.

        Returns:
            Whether all are removed; False: some are left, mostly because the engine is away.
        """
        ports, all_gone = self._ports, True
        try:
            folders = {path.name for path in ports.config.jobs.glob("*")}
            for name in sorted(ports.runner.jobs() | folders):
                with self._lock:
                    if self._left or name in self._runs or name in instance_slots(ports.store):
                        continue
                with self._pools.vacating(name):
                    if name in self._pools.slots():
                        continue
                    try:  # the folder goes last: a runner may keep its own records in it
                        ports.runner.remove(name)
                        remove_tree(ports.config.jobs / name)
                    except RunnerUnavailable:
                        raise
                    except RunnerError as error:  # the others can still be removed
                        _log.warning("What is left of %s is not removed yet: %s", name, error)
                        all_gone = False
        except RunnerUnavailable as error:
            _log.warning("Leftover containers are not removed yet: %s", error)
            return False
        except RunnerError as error:
            _log.warning("Leftover containers are not removed yet: %s", error)
        except Exception:  # noqa: BLE001 - at shutdown the store may be closed already
            if not self._left:
                _log.exception("Leftover containers are not removed.")
        return all_gone


def _was_let_in(job: Job) -> bool:
    return job.lifecycle.training_start is not None
