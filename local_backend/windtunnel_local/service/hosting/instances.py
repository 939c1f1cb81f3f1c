"""Watches, replaces and removes the instances of one endpoint or transform job."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from windtunnel_local.service.data.trees import remove_tree
from windtunnel_local.service.ground.errors import RunnerError
from windtunnel_local.service.ground.hosting import Instance, Variant
from windtunnel_local.service.ground.ports import Ports
from windtunnel_local.service.hosting.instance_run import InstanceRun
from windtunnel_local.service.hosting.serving_plan import HOST

_log = logging.getLogger(__name__)

_LONGEST_PAUSE_S = 30.0
_STEADY_S = 60.0


class Instances:
    """The instances of one endpoint or transform job. Only its thread may start and remove instances."""

    def __init__(self, ports: Ports, wake: Callable[[], None]) -> None:
        """``wake`` is called when an instance has become ready or has ended."""
        self.runs: dict[int, InstanceRun] = {}
        """By number of the instance."""
        self._ports = ports
        self._wake = wake
        self._failures = 0
        self._next_try = 0.0

    @property
    def may_add(self) -> bool:
        """Whether a new instance may be started now: after repeated failures there is a pause."""
        return time.monotonic() >= self._next_try

    def watch(self, instance: Instance, variant: Variant) -> None:
        """Start an instance, or adopt it if it runs already. Idempotent."""
        if instance.number not in self.runs:
            self.runs[instance.number] = InstanceRun(self._ports, instance, variant, self._wake)

    def leave(self) -> None:
        """Stop watching; containers run on. Does not block."""
        for run in list(self.runs.values()):
            run.leave()

    def replace(self, failed: Iterable[InstanceRun]) -> None:
        """Remove instances that have ended. The pause before new ones doubles with each failure in a row."""
        for run in failed:
            _log.warning("The %s replaces %s: %s", run.instance.owned_by, run.instance.id, run.error)
            self.remove([run.instance])
        now = time.monotonic()
        self._failures = 0 if now > self._next_try + _STEADY_S else self._failures + 1
        self._next_try = now + (min(2.0 ** (self._failures - 1), _LONGEST_PAUSE_S) if self._failures else 0.0)

    def remove(self, instances: Iterable[Instance]) -> None:
        """Remove the instances' containers and folders. Raises ``RunnerError``; the caller then tries again."""
        for instance in instances:
            run = self.runs.pop(instance.number, None)
            if run is not None:
                run.leave()
                run.join()
            self._ports.runner.terminate(instance.slot, HOST)
            with suppress(RunnerError):
                self._ports.runner.wait(instance.slot, HOST, 1.0)
            self._ports.runner.remove(instance.slot)
            remove_tree(self._ports.config.jobs / instance.slot)
