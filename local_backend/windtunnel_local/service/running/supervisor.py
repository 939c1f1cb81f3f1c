"""All running jobs: one thread each, started with the job or when a server adopts it."""

from __future__ import annotations

import logging
import threading

from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.errors import RunnerError
from windtunnel_local.service.lifecycle import StopRequested
from windtunnel_local.service.running.backend import Backend
from windtunnel_local.service.running.job_run import JobRun

_log = logging.getLogger(__name__)

_LEAVE_PATIENCE_S = 5.0
_CLEAN_UP_PATIENCE_S = 60.0


class Supervisor:
    """Starts, adopts and stops jobs. Safe from several threads; no call waits for a script."""

    def __init__(self, backend: Backend) -> None:
        """Nothing runs yet; `resume` adopts what an earlier server left."""
        self._backend = backend
        self._lock = threading.Lock()
        self._runs: dict[str, tuple[JobRun, threading.Thread]] = {}
        self._left = False
        self._sweep: threading.Thread | None = None

    def start(self, name: str) -> None:
        """Run a recorded, unfinished job, from wherever it stands. Idempotent."""
        with self._lock:
            if self._left or name in self._runs:
                return
            run = JobRun(name, self._backend)
            # A daemon: a job must not keep a process alive that was told to end.
            thread = threading.Thread(target=self._run, args=(name, run), name=f"job {name}", daemon=True)
            self._runs[name] = (run, thread)
            thread.start()

    def stop(self, name: str) -> None:
        """Ask a job to stop; returns once that is recorded.

        Raises:
            JobNotFound: no such job.
            IllegalTransition: it has ended.
        """
        self._backend.advance(name, StopRequested())
        with self._lock:
            run = self._runs.get(name)
        if run is None:
            self.start(name)
        else:
            run[0].wake()

    def resume(self) -> None:
        """Adopt every unfinished job, and remove what finished ones left. Call once, before serving."""
        for job in self._backend.store.unfinished_jobs():
            _log.info("Job %s is adopted.", job.name)
            self.start(job.name)
        self._sweep = threading.Thread(target=self._remove_leftovers, name="sweep", daemon=True)
        self._sweep.start()

    def busy(self) -> bool:
        """Whether any job runs or is being cleaned up."""
        with self._lock:
            return bool(self._runs)

    def await_clean_up(self, name: str) -> None:
        """Wait until a finished job's containers and folder are gone. Blocks, in general not at all."""
        with self._lock:
            run = self._runs.get(name)
        if run is not None:
            run[1].join(_CLEAN_UP_PATIENCE_S)

    def shutdown(self) -> None:
        """Let go of all jobs; their containers run on and the next server adopts them. Blocks for
        seconds at most. Idempotent.
        """
        with self._lock:
            self._left = True
            runs = list(self._runs.values())
        for run, _ in runs:
            run.leave()
        for _, thread in runs:
            thread.join(_LEAVE_PATIENCE_S)
        if self._sweep is not None:
            self._sweep.join(_LEAVE_PATIENCE_S)

    def _run(self, name: str, run: JobRun) -> None:
        try:
            run.run()
        finally:
            with self._lock:
                self._runs.pop(name, None)

    def _remove_leftovers(self) -> None:
        """Remove containers and folders of jobs that have ended, or that nobody remembers."""
        backend = self._backend
        try:
            folders = {path.name for path in backend.config.jobs.glob("*")}
            for name in sorted(backend.runner.jobs() | folders):
                with self._lock:  # no job of this name can start meanwhile
                    job = backend.store.get_job(name)
                    if self._left or name in self._runs or (job is not None and not job.lifecycle.finished):
                        continue
                    # In this order: a runner may keep its records in the folder.
                    backend.runner.remove(name)
                    remove_tree(backend.config.jobs / name)
        except RunnerError as error:
            _log.warning("Leftover containers are not removed yet: %s", error)
        except Exception:  # noqa: BLE001 - a store that is closed while leaving is no news
            if not self._left:
                _log.exception("Leftover containers are not removed.")
