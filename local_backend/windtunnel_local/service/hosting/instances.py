"""The instances of one endpoint or transform job: watched, replaced when they end, removed."""

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
    """For one thread, which is the only one that starts and removes."""

    def __init__(self, ports: Ports, wake: Callable[[], None]) -> None:
        """``wake`` is called when one has become ready, or has ended."""
        self.runs: dict[int, InstanceRun] = {}
        """By the instance's number."""
        self._ports = ports
        self._wake = wake
        self._failures = 0
        self._next_try = 0.0

    @property
    def may_add(self) -> bool:
        """Whether a new one may come: the more have ended, the later."""
        return time.monotonic() >= self._next_try

    def watch(self, instance: Instance, variant: Variant) -> None:
        """Start it, or adopt the one that runs. Idempotent."""
        if instance.number not in self.runs:
            self.runs[instance.number] = InstanceRun(self._ports, instance, variant, self._wake)

    def leave(self) -> None:
        """Stop watching; containers run on. Does not block."""
        for run in list(self.runs.values()):
            run.leave()

    def replace(self, failed: Iterable[InstanceRun]) -> None:
        """Remove what is left of those that have ended; the more end at once, the later others come."""
        for run in failed:
            _log.warning("The %s replaces %s: %s", run.instance.owned_by, run.instance.id, run.error)
            self.remove([run.instance])
        now = time.monotonic()
        self._failures = 0 if now > self._next_try + _STEADY_S else self._failures + 1
        self._next_try = now + (min(2.0 ** (self._failures - 1), _LONGEST_PAUSE_S) if self._failures else 0.0)

    def remove(self, instances: Iterable[Instance]) -> None:
        """Containers and folders. Raises ``RunnerError``: then it is done again."""
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
