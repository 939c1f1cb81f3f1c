"""Workers of Ray Train: each is a core from the first to the last line of its training function.

Ray runs that function in a thread, and kills the process when it has returned: no exit handlers run. So what torchrun's
workers do at their start and end is done here before and after the function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from neuron_sim import settings
from neuron_sim.counters import recorder
from neuron_sim.runtime import lifetime

ENTRY = "ray.train.v2._internal.execution.worker_group.thread_runner:ThreadRunner.run"
"""Ray's method that runs a training function, since Ray 2.51 by default."""


def around_run(run: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate Ray's method that runs a training function in a thread."""

    @functools.wraps(run)
    def run_as_core(runner: Any, target: Callable[[], Any]) -> Any:
        return run(runner, _as_core(target))

    return run_as_core


def _as_core(function: Callable[[], Any]) -> Callable[[], Any]:
    @functools.wraps(function)
    def core() -> Any:
        lifetime.join()
        failed = True
        try:
            result = function()
            failed = False
            return result
        except SystemExit as error:
            # A short rehearsal ends its script by this. To Ray it would be a failure.
            failed = bool(error.code) or settings.read().rehearsed_steps is None
            if failed:
                raise
            return None
        finally:
            if failed:
                recorder.counting.failed()
            recorder.counting.end()
            lifetime.leave(failed=failed)

    return core
