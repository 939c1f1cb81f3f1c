"""Runs one job from its current status to its end, step by step, and handles a step that fails."""

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
        """Starts nothing yet."""
        self._name = run.name
        self._run = run

    def wake(self) -> None:
        """Make the job's thread read the record now, because it has changed."""
        self._run.woken.set()

    def now(self) -> datetime:
        """The current time by the job's clock (see `Run.now`)."""
        return self._run.now()

    def leave(self) -> None:
        """Make `run` return soon and leave the job as it is."""
        self._run.leaving.set()
        self._run.woken.set()
        for follower in list(self._run.followers):
            follower.leave()

    def run(self) -> None:
        """Take all steps to the job's end. Blocks. Raises nothing: an error in a step fails the job."""
        pause_s = self._run.ports.config.pace.retry_s
        try:
            while not self._take_steps():
                # Mostly the disk is full. If the thread gave up, the job would never end or be cleaned up.
                self._run.leaving.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_RETRY_S)
        except Leaving:
            _log.info("Job %s is left as it is; the next server adopts it.", self._name)
        finally:
            self._run.unfollow()

    def _take_steps(self) -> bool:
        """Take all steps to the end, then clean up; False: the job's record cannot be read or written now."""
        try:
            while not (job := self._run.records.get(self._name)).lifecycle.finished:
                self._take_step(job)
            clean_up.release(self._run, job)
        except Leaving:
            raise
        except Exception as error:
            if self._run.leaving.is_set():  # at shutdown the store may be closed already
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
            pass  # the status has changed, so another step is next
        except RunnerUnavailable as error:
            self._await_engine(secondary, error)
        except (Leaving, StoreUnavailable):
            raise  # the step itself has not failed: it is repeated once its result can be stored
        except Exception as error:
            if self._run.leaving.is_set():
                raise Leaving from error
            now = self._run.records.get(self._name)
            if now.lifecycle.secondary != secondary:
                return  # a stop interrupted the step, so its error no longer matters
            expected = isinstance(error, (RunnerError, InputError))
            if not expected:
                _log.exception("Job %s failed while %s.", self._name, secondary)
            reason = str(error) if expected else internal_reason(error)
            if limits.may_retry(now, reason):
                self._run.advance(lifecycle.Lost(limits.retry_message(now, reason)), secondary)
            else:
                self._fail(now, reason)

    def _await_engine(self, secondary: str, error: RunnerUnavailable) -> None:
        """Wait before the step is repeated. Only a job that has not begun fails because the engine is away."""
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
        """Kill the containers, store what they printed, and record why the job failed."""
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
            clean_up.remove(self._run, job)  # mostly the job's own downloads fill the disk
            self._run.advance(failed)
