"""A process as a core: it joins its peers, claims its cores at the first use of the device, and leaves.

Cores are claimed at the first use and never at import, as by the Neuron runtime. The table
of hooks says which functions are a use. A use that does not pass through Python (a lone
`tensor.to("xla")`) leads to a claim at the next synchronisation.
"""

from __future__ import annotations

import atexit
import os
import sys
from datetime import datetime, timezone

from neuron_sim import settings
from neuron_sim.collectives import operation
from neuron_sim.counters import recorder
from neuron_sim.device import world
from neuron_sim.diagnostics import log
from neuron_sim.errors import CoreBusyError, NotSimulatedError
from neuron_sim.names.torch_xla_names import ONE_PROCESS_A_CORE
from neuron_sim.runtime import busy_message, claims, cores
from neuron_sim.runtime.usage import Publisher

_current: settings.Settings
_publisher: Publisher | None = None
_claimed = False
"""Also true in forked children of a process that has claimed: they share its cores."""


def start(current: settings.Settings, publisher: Publisher) -> None:
    """Keep both for `claim`. Nothing is claimed yet."""
    global _current, _publisher
    _current, _publisher = current, publisher


def join() -> None:
    """Let the other cores of this host notice when this one ends. The process must also call `leave`."""
    operation.join()


def claim() -> None:
    """Claim this process's cores, until it ends. Idempotent.

    Raises:
        CoreBusyError: another process holds one of them.
        TopologyError: the host does not have them.
        NotSimulatedError: XLA_USE_SPMD is set.
    """
    global _claimed
    if _claimed:
        return
    if settings.uses_spmd():
        # torch_xla gives such a process no core of its own: on trn1, a worker would ask for all cores of the host.
        raise NotSimulatedError("SPMD (XLA_USE_SPMD)", f"{ONE_PROCESS_A_CORE} Unset XLA_USE_SPMD.")
    # First the error that the host has too few cores for its workers: it explains more.
    world.me()
    request = cores.request(settings.core_wish(), _current.cores, _current.instance_type)
    try:
        held = claims.claim(_current.cores_dir, request, _current.cores)
    except CoreBusyError as error:
        _log(str(error))
        raise CoreBusyError(
            f"{error}. {busy_message.explain(_current.cores_dir, request, _current.cores)}"
        ) from None
    _claimed = True
    atexit.register(_at_exit, os.getpid())
    if _current.rehearsed_steps is not None:
        # Before the script can print a loss: divided by the loader's true length, it looks as if the model learned.
        log.say(
            "short rehearsal: passes over data loaders end early, the first after about "
            f"{_current.rehearsed_steps} batches. Losses and accuracies that the script prints, and the model that it "
            "saves, mean nothing."
        )
    if _publisher is not None:
        _publisher.start(held)


def has_claimed() -> bool:
    """Whether this process has used the device: a launcher of processes and a loader's worker have not."""
    return _claimed


def failed() -> None:
    """Called when the script has ended with an error: the counters say so, if this process is a core."""
    if _publisher is not None:
        recorder.counting.failed()


def leave(*, failed: bool = False) -> None:
    """Called when the script has ended: free its cores. Ranks that still wait for it in a collective get an error."""
    operation.leave(failed=failed)
    _release()


def _release() -> None:
    if _publisher is not None:
        _publisher.end()
    claims.release()


def _at_exit(pid: int) -> None:
    if os.getpid() == pid:
        _release()


def _log(message: str) -> None:
    """Write a message in the form of the Neuron runtime's own log, so that searches of logs find it."""
    now = datetime.now(timezone.utc)
    stamp = f"{now:%Y-%b-%d %H:%M:%S.%f}"
    place = f"{os.getpid()}:{os.getpid()}"
    sys.stderr.write(f"{stamp} {place} ERROR   NRT:nrt_allocate_neuron_cores               {message}\n")
