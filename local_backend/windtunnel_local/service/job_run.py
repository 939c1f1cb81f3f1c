"""One job from wherever it stands to its end: step after step, and what happens when one fails."""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import datetime

from windtunnel_local.service.ground import lifecycle
from windtunnel_local.service.ground.errors import (
    InputError,
    RunnerError,
    RunnerUnavailable,
    StoreUnavailable,
)
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.running import clean_up, limits
from windtunnel_local.service.running.container_ends import drain
from windtunnel_local.service.running.context import Leaving, Run
from windtunnel_local.service.running.failure_reason import internal_reason
from windtunnel_local.service.running.job_records import Overtaken
from windtunnel_local.service.running.steps import STEPS

_log = logging.getLogger(__name__)

_LONGEST_RETRY_S = 10.0
_AWAY_POLL_S = 0.25


class JobRun:
    """Runs one job; `run` blocks until the job has ended or the server leaves."""

    def __init__(self, run: Run) -> None:
        """Nothing happens yet."""
        self._name = run.name
        self._run = run

    def wake(self) -> None:
        """Look at the record now: it has changed."""
        self._run.woken.set()

    def now(self) -> datetime:
        """The job's time."""
        return self._run.now()

    def leave(self) -> None:
        """Return from `run` soon and leave the job as it is."""
        self._run.leaving.set()
        self._run.woken.set()
        for follower in list(self._run.followers):
            follower.leave()

    def run(self) -> None:
        """Take step after step. Blocks. Nothing is raised: what goes wrong fails the job."""
        pause_s = self._run.ports.config.pace.retry_s
        try:
            while not self._take_steps():
                # In most cases the disk is full. A job whose thread gave up would never end, or never be cleaned up.
                self._run.leaving.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_RETRY_S)
        except Leaving:
            _log.info("Job %s is left as it is; the next server adopts it.", self._name)
        finally:
            self._run.unfollow()

    def _take_steps(self) -> bool:
        """Step after step to the end, and the clean-up; False: the job's record cannot be read or written now."""
        try:
            while not (job := self._run.records.get(self._name)).lifecycle.finished:
                self._take_step(job)
            clean_up.release(self._run, job)
        except Leaving:
            raise
        except Exception as error:
            if self._run.leaving.is_set():  # a store that is closed while leaving is no news
                raise Leaving from error
            known = isinstance(error, StoreUnavailable)
            _log.warning("Job %s waits: %s", self._name, error, exc_info=None if known else error)
            return False
        return True

    def _take_step(self, job: Job) -> None:
        secondary = job.lifecycle.secondary
        try:
            self._run.check(secondary)
            STEPS[secondary](self._run, job)
        except Overtaken:
            pass  # the next step is another one
        except RunnerUnavailable as error:
            self._await_engine(secondary, error)
        except (Leaving, StoreUnavailable):
            raise  # no step has failed: it is taken again, when there is room for its result
        except Exception as error:
            if self._run.leaving.is_set():
                raise Leaving from error
            now = self._run.records.get(self._name)
            if now.lifecycle.secondary != secondary:
                return  # a stop cut the step short; what it broke does not matter any more
            expected = isinstance(error, (RunnerError, InputError))
            if not expected:
                _log.exception("Job %s failed while %s.", self._name, secondary)
            reason = str(error) if expected else internal_reason(error)
            if limits.may_retry(now, reason):
                self._run.advance(lifecycle.Lost(limits.retry_message(now, reason)), secondary)
            else:
                self._fail(now, reason)

    def _await_engine(self, secondary: str, error: RunnerUnavailable) -> None:
        """Wait before the step is taken again: a job that has begun does not fail because the engine is away."""
        if self._run.leaving.is_set():
            raise Leaving from error
        now = self._run.records.get(self._name)
        if secondary == "Starting" and now.lifecycle.training_start is None:
            if now.lifecycle.secondary == secondary:
                self._fail(now, str(error))
            return
        if self._run.engine_away is None:
            _log.warning("Job %s waits for the engine: %s", self._name, error)
        self._run.engine_away = self._run.now()
        self._run.leaving.wait(_AWAY_POLL_S)

    def _fail(self, job: Job, reason: str) -> None:
        """Kill the containers, keep what they printed, and record why the job failed."""
        with suppress(RunnerError):
            for host in job.hosts:
                self._run.ports.runner.kill(job.slot, host)
            if self._run.followers:
                drain(self._run, self._run.followers)
        failed = lifecycle.Failed(reason)
        try:
            self._run.advance(failed)
        except StoreUnavailable:
            if job.lifecycle.secondary != "Downloading":
                raise
            clean_up.remove(self._run, job)  # in most cases it is what was fetched that fills the disk
            self._run.advance(failed)
