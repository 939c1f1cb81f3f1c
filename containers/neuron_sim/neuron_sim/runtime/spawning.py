"""`xmp.spawn` and `torch_xla.launch`: each process that they start is a core from its first to its last line.

torch_xla starts a pool of processes, and tells each its ordinal in the call that runs
the user's function. A process of a pool outlives that function, and one that was forked
runs no exit handlers. So what torchrun's workers do at their start and end is done here
before and after the function.
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
import traceback
import uuid
from collections.abc import Callable
from typing import Any

from torch_xla._internal import pjrt

from neuron_sim import settings
from neuron_sim.counters import recorder, script_time
from neuron_sim.diagnostics import log
from neuron_sim.errors import PeerLostError
from neuron_sim.interconnect import region
from neuron_sim.interconnect.communicator import LAUNCH_VARIABLE, launch_name
from neuron_sim.runtime import lifetime

_ORDINAL = "NEURON_PJRT_PROCESS_INDEX"
_PASSED_OVER = (2, 1), (2, 6)
"""From the first of these versions until before the second, xmp.spawn ignores ``nprocs``. AWS Neuron documentation,
"Introducing PyTorch 2.6 Support".
"""


def around_launch(run_multiprocess: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate torch_xla's start of a pool: its shared memory belongs to this launch, and is removed after it."""
    launches = itertools.count(1)

    @functools.wraps(run_multiprocess)
    def launch(*arguments: Any, **keywords: Any) -> Any:
        before = os.environ.get(LAUNCH_VARIABLE)
        # A second launch of the same process must not find what the first has left.
        if _by_torchrun():  # each of its workers starts a pool of one, and all of these pools meet
            os.environ[LAUNCH_VARIABLE] = f"{before or ''}-{next(launches)}"
            name = launch_name()
        else:
            _tell_idle_cores()
            os.environ[LAUNCH_VARIABLE] = name = uuid.uuid4().hex
        try:
            return run_multiprocess(*arguments, **keywords)
        finally:
            region.forget(name)
            if before is None:
                del os.environ[LAUNCH_VARIABLE]
            else:
                os.environ[LAUNCH_VARIABLE] = before

    return launch


def around_spawn(spawn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate `xmp.spawn`, which raises for a number other than 1: leave it out in versions that ignored it."""

    @functools.wraps(spawn)
    def started(fn: Callable[..., Any], nprocs: int | None = None, *more: Any, **keywords: Any) -> Any:
        since, until = _PASSED_OVER
        if nprocs not in (None, 1) and since <= settings.read().framework_version < until:
            log.say(
                f"warning: xmp.spawn passes over nprocs={nprocs}, here and on trn1; PyTorch 2.6 and later raise of it. "
                "NEURONCORE_NUM_DEVICES in environment= says how many processes start."
            )
            nprocs = None
        return spawn(fn, nprocs, *more, **keywords)

    return started


def _tell_idle_cores() -> None:
    """Warn of idle cores: torch_xla starts as many processes as NEURONCORE_NUM_DEVICES says, by default one."""
    started, cores = int(os.environ.get("NEURONCORE_NUM_DEVICES") or 1), settings.read().cores
    if started < cores:
        log.say(
            f"warning: the script starts {started} process{'es' if started > 1 else ''}, here and on trn1, and "
            f"{cores - started} of {cores} NeuronCores stay idle. The report is of all of them: launch with "
            f"torch_distributed, or set NEURONCORE_NUM_DEVICES={cores} in environment=."
        )


def _by_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def _in_a_thread_of_its_own(function: Callable[[], Any]) -> Callable[[], Any]:
    """Count the thread in which torch_xla runs the user's function, not the main one, as the script's thread."""

    def run() -> Any:
        script_time.clock.begin()
        return function()

    return run


def around_process(run: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate the function that runs in each process of a pool.

    It is sent to the processes by its name, so the wrapper has the same name.
    """

    @functools.wraps(run)
    def core(
        local_rank: int,
        local_world_size: int,
        fn: Callable[[], Any],
        initializer_fn: Callable[[int, int], None],
    ) -> Any:
        if initializer_fn is not pjrt.initialize_multiprocess:
            return run(local_rank, local_world_size, fn, initializer_fn)
        if _by_torchrun():
            region.unprepared()
        else:
            # torch_xla sets it too, with the first use of the device: too late for the counters.
            os.environ[_ORDINAL] = str(local_rank)
        recorder.counting.begin()
        lifetime.join()
        failed = True
        try:
            result = run(local_rank, local_world_size, _in_a_thread_of_its_own(fn), initializer_fn)
            failed = False
            return result
        except Exception as error:
            recorder.counting.failed()
            if local_rank and not isinstance(error, PeerLostError):
                # torch_xla shows the error of the first process with one, which usually only waited for this one.
                sys.stderr.write(f"rank {local_rank} has failed:\n{traceback.format_exc()}")
                sys.stderr.flush()
            raise
        finally:
            recorder.counting.end()
            lifetime.leave(failed=failed)

    return core
