"""Runs one instance of an endpoint or transform job, from its model's download to its container's end."""

from __future__ import annotations

import http.client
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.ground.errors import (
    InputError,
    RunnerError,
    RunnerUnavailable,
    StoreUnavailable,
)
from windtunnel_local.service.ground.hosting import Instance, Variant, stored_stream
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.hosting import serving_plan
from windtunnel_local.service.hosting.container_answer import connect
from windtunnel_local.service.hosting.model_files import provide_model
from windtunnel_local.service.hosting.router import Target
from windtunnel_local.service.running.host_follower import Followed, HostFollower

_log = logging.getLogger(__name__)

_PING_S = 2.0
"""Seconds in which a container must answer a ping: AWS's limit."""
_PING_EVERY_S = 0.1
_HEALTH_EVERY_S = 5.0
_UNHEALTHY = 6
"""After so many failed pings in a row, a container in service is replaced.

AWS pings containers in service too and replaces unhealthy ones; it does not publish its numbers, so these two are ours.
"""
_PATIENCE_S = 5.0
_TAIL_LINES = 5
_HOST = serving_plan.HOST


class _Left(Exception):
    """The server shuts down, or the instance is to be removed."""


class InstanceRun:
    """A thread that starts an instance's container, or adopts it if it runs already, and watches it."""

    def __init__(self, ports: Ports, instance: Instance, variant: Variant, wake: Callable[[], None]) -> None:
        """Starts the thread. ``wake`` is called when `target` or `error` has changed."""
        self.instance = instance
        self.variant = variant
        self.target: Target | None = None
        """Where to send requests; set while the container is in service."""
        self.error: str | None = None
        """Set when the instance has failed: why."""
        self._ports = ports
        self._wake = wake
        self._leaving = threading.Event()
        self._follower: HostFollower | None = None
        self._stream = stored_stream(instance.group, instance.stream)
        name = f"{instance.owned_by} {instance.id}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Stop watching; the container runs on. Does not block."""
        self._leaving.set()
        if self._follower is not None:
            self._follower.leave()

    @property
    def drained(self) -> bool:
        """Whether all of its log is stored."""
        return self._follower is None or self._follower.drained

    def join(self) -> None:
        """Wait for the thread, some seconds at most."""
        self._thread.join(_PATIENCE_S)

    def _run(self) -> None:
        try:
            self._await_engine(self._start)
            self._await_ping()
            self._wake()
            self._await_end()
        except _Left:
            return
        except (InputError, RunnerError, StoreUnavailable) as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001 - logged, and the endpoint's reason
            if self._leaving.is_set():  # at shutdown the store may be closed already
                return
            _log.error("%s, %s", self.instance.owned_by, self.instance.id, exc_info=error)
            self.error = f"InternalServerError: {error}"
        self.target = None
        self._wake()

    def _check(self, _line: str = "") -> None:
        if self._leaving.is_set():
            raise _Left

    def _await_engine(self, work: Callable[[], None]) -> None:
        """Call ``work``. If the engine is away, an instance that was ready before waits for it; a new one fails."""
        while True:
            self._check()
            try:
                return work()
            except RunnerUnavailable:
                if not self.instance.ready:
                    raise
                self._leaving.wait(self._ports.config.pace.retry_s)

    def _start(self) -> None:
        ports, slot = self._ports, self.instance.slot
        state = ports.runner.state(slot, _HOST)
        if state.status in ("absent", "created"):
            folders = ports.config.paths(slot)
            remove_tree(folders.root)
            for folder in (folders.model(_HOST), folders.home(_HOST), folders.counters(_HOST)):
                folder.mkdir(parents=True)
            provide_model(self.variant.container, folders.model(_HOST), ports.objects, self._check)
            plan = serving_plan.plan(self.instance, self.variant, ports.config)
            ports.runner.ensure_image(plan.containers[0].image, self._check)
            self._check()
            ports.runner.start(plan)
        followed = Followed(self.instance.owned_by, slot, _HOST, self._stream)
        if self._follower is None:
            self._follower = HostFollower(ports, followed, self._wake)
            self._follower.start()

    def _await_ping(self) -> None:
        deadline = time.monotonic() + self.variant.timeout_s
        while True:
            self._check()
            with suppress(RunnerUnavailable):
                self._raise_end()
                address = self._ports.runner.address(self.instance.slot, _HOST)
                if address is not None and pings(address):
                    self.target = Target(self.instance.slot, self.instance.variant, address)
                    return
            if time.monotonic() > deadline:
                raise RunnerError(
                    f"The container for {self._served} did not pass the ping health check"
                    f" within {self.variant.timeout_s} s.{self._tail()}"
                )
            self._leaving.wait(_PING_EVERY_S)

    @property
    def _served(self) -> str:
        instance = self.instance
        return f"production variant {instance.variant}" if instance.kind == "endpoint" else instance.owned_by

    def _await_end(self) -> None:
        failed, next_ping = 0, 0.0
        while True:
            self._check()
            self._raise_end()
            if self.target is not None and time.monotonic() > next_ping:
                failed = 0 if pings(self.target.address) else failed + self._is_reachable()
                next_ping = time.monotonic() + _HEALTH_EVERY_S
            if failed >= _UNHEALTHY:
                raise RunnerError(
                    f"The container for {self._served} did not answer {failed} pings one after the other."
                )
            self._leaving.wait(self._ports.config.pace.tick_s)

    def _is_reachable(self) -> bool:
        """Whether the container's port can be reached: if not, as without an engine, a failed ping does not count."""
        with suppress(RunnerUnavailable):
            return self._ports.runner.address(self.instance.slot, _HOST) is not None
        return False

    def _raise_end(self) -> None:
        follower = self._follower
        if follower is None or follower.exit is None:
            return
        deadline = time.monotonic() + _PATIENCE_S
        while not follower.drained and time.monotonic() < deadline:  # the last lines may tell the reason
            self._leaving.wait(_PING_EVERY_S)
            self._check()
        how = "was removed" if follower.exit.exit_code is None else f"exit code {follower.exit.exit_code}"
        killed = ""
        if follower.exit.oom_killed:
            limit = (self._ports.config.memory_cap_bytes or 0) / (1 << 30)
            killed = (
                f", killed for memory: all of its workers together may have {limit:.3g} GiB here;"
                " WINDTUNNEL_MEMORY_GIB raises that if this machine has more"
            )
        raise RunnerError(f"The container for {self._served} has ended ({how}{killed}).{self._tail()}")

    def _tail(self) -> str:
        """The end of an error message: where the log is, and its last lines, which mostly tell the reason."""
        events = self._ports.store.read_log_before(self._stream, 1 << 62, _TAIL_LINES)
        hint = f" Please check CloudWatch logs for this {self.instance.kind.replace('-', ' ')}."
        return hint + (" Its last lines: " + " | ".join(e.message for e in events) if events else "")


def pings(address: tuple[str, int]) -> bool:
    """Whether a container answers GET /ping with 200 in time, as SageMaker requires."""
    connection = http.client.HTTPConnection(*address, timeout=_PING_S)
    try:
        connect(connection, time.monotonic() + _PING_S, threading.Event())
        connection.request("GET", "/ping")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
