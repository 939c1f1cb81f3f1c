"""Follows a container of a job, an endpoint or a transform job: stores its output, and waits for its end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from windtunnel_local.service.ground.config import ServiceConfig
from windtunnel_local.service.ground.containers import ContainerState, LogBatch, LogLine
from windtunnel_local.service.ground.errors import RunnerError, RunnerUnavailable, StoreUnavailable
from windtunnel_local.service.ground.job import Job
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.request import plan
from windtunnel_local.service.running import spot
from windtunnel_local.service.running.failure_reason import settled

_log = logging.getLogger(__name__)

_WAIT_SLICE_S = 1.0
_ATTEMPTS = 6
_BACKOFF_S = 0.2
_NOTHING_READ = ""
"""The cursor that is stored with the backend's own first lines: nothing of the container's output is read yet."""


@dataclass(frozen=True)
class Followed:
    """The container to follow, and the log stream for its output. ``name``: of its job or endpoint; ``slot``: for
    the runner.

    ``job``: the training job, or None. ``preface``: the backend's own lines at the start. ``begins``: in a container
    that was taken over, the cursor at which this job's output begins.
    """

    name: str
    slot: str
    host: str
    stream: str
    job: str | None = None
    preface: tuple[LogLine, ...] = ()
    begins: str | None = None


def followed(job: Job, host: str, config: ServiceConfig) -> Followed:
    """The `Followed` of one host of a training job."""
    first = job.lifecycle.count("Downloading") <= 1
    return Followed(
        job.name,
        job.slot,
        host,
        job.stream(host),
        job.name,
        plan.log_preface(job, host, config) + spot.preface(job, host),
        job.warm_pool.begins.get(host) if job.warm_pool and first else None,
    )


class HostFollower:
    """Two threads for one host: one stores its output, one waits for its end.

    The output resumes at the cursor that is stored with the lines, so that after a crash no line is lost or repeated.
    """

    def __init__(self, ports: Ports, followed: Followed, wake: Callable[[], None]) -> None:
        """Starts nothing yet. ``wake`` is called when the container has ended, or following it has ended or failed."""
        self.host = followed.host
        self.exit: ContainerState | None = None
        """Set when the container has ended."""
        self.error: Exception | None = None
        """Set when following has failed so often that it was given up."""
        self.batches = 0
        """The number of batches of output stored so far."""
        self.stalled = False
        """Whether following waits until the store takes the output, or the engine comes back."""
        self.seen_s = ports.clock.monotonic()
        """When the container was last seen running, in monotonic seconds."""
        self.out_of_sight = False
        """Whether the engine has been away since then, so that the moment of the end was not seen."""
        self._ports = ports
        self._followed = followed
        self._name = followed.name
        self._slot = followed.slot
        self._stream = followed.stream
        self._wake = wake
        self._leaving = threading.Event()
        self._storing = threading.Lock()
        self._drained = threading.Event()

    def start(self) -> None:
        """Open the log stream and start the threads."""
        store, now_ms = self._ports.store, self._ports.now_ms()
        store.open_log_stream(self._followed.job, self.host, self._stream, now_ms)
        if self._followed.preface and store.log_cursor(self._stream) is None:
            store.append_log(self._stream, LogBatch(self._followed.preface, _NOTHING_READ), now_ms)
        for work in (self._store_output, self._await_end):
            # Daemon threads: a runner may block in `logs` for as long as a script prints nothing.
            name = f"{self._name}/{self.host}{work.__name__}"
            threading.Thread(target=self._guard, args=(work,), name=name, daemon=True).start()

    def leave(self) -> None:
        """Tell the threads to end, without waiting for them; once this returns, nothing more is stored."""
        with self._storing:
            self._leaving.set()

    @property
    def drained(self) -> bool:
        """Whether the container has ended and every line is stored."""
        return self._drained.is_set() or self._vanished

    @property
    def _vanished(self) -> bool:
        """Whether the container was removed, so that its last output cannot be read."""
        return self.exit is not None and self.exit.status == "absent"

    def _guard(self, work: Callable[[], None]) -> None:
        """Run ``work``, again after each error; give up after `_ATTEMPTS` errors without new output in between."""
        failures, before = 0, self.batches
        while not self._leaving.is_set():
            try:
                work()
                break
            except StoreUnavailable as error:  # the engine keeps the lines until they can be stored
                if not self.stalled:
                    _log.warning("The output of %s of %s waits: %s", self.host, self._name, error)
                self.stalled = True
                self._leaving.wait(self._ports.config.pace.stalled_s)
            except RunnerUnavailable as error:  # once the engine is back, it reports the container's state
                if not self.stalled:
                    _log.warning("%s of %s is out of sight: %s", self.host, self._name, error)
                self.stalled = self.out_of_sight = True
                self._leaving.wait(self._ports.config.pace.stalled_s)
            except Exception as error:  # noqa: BLE001 - logged, and kept for `raise_errors`
                if self._leaving.is_set() or self._vanished:
                    break
                failures = 1 if self.batches != before else failures + 1
                before = self.batches
                _log.warning("Following %s of %s: %s", self.host, self._name, error, exc_info=True)
                if failures >= _ATTEMPTS:
                    self.error = error
                    break
                self._leaving.wait(_BACKOFF_S * failures)
        self._wake()

    def _store_output(self) -> None:
        cursor = self._ports.store.log_cursor(self._stream) or self._followed.begins
        for batch in self._ports.runner.logs(self._slot, self.host, cursor):
            with self._storing:
                if self._leaving.is_set():
                    return
                self._ports.store.append_log(self._stream, batch, self._ports.now_ms())
            self.batches += 1
            self.stalled = False
        self._drained.set()

    def _await_end(self) -> None:
        while not self._leaving.is_set():
            state = self._ports.runner.wait(self._slot, self.host, _WAIT_SLICE_S)
            self.stalled = False
            if state.status in {"exited", "absent"}:
                self.exit = settled(self.host, state, self._ports.config.paths(self._slot))
                return
            self.seen_s, self.out_of_sight = self._ports.clock.monotonic(), False


def raise_errors(followers: list[HostFollower]) -> None:
    """Raise the error that made a follower give up, if one has.

    Raises:
        RunnerError: names the host.
    """
    for follower in followers:
        if follower.error is not None:
            raise RunnerError(
                f"InternalServerError: host {follower.host} can no longer be followed: {follower.error}"
            ) from follower.error
