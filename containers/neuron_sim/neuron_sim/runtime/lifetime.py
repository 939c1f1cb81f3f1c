"""A process claims its cores when it first uses the device, as the Neuron runtime does: never at import.

torch_xla's Python layers reach the device through functions of `_XLAC`, looked up at each
use. Those that need the device are wrapped until the cores are claimed. What never passes
through Python (`tensor.to("xla")` and nothing else) claims at the next synchronisation.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import _XLAC

from neuron_sim import settings
from neuron_sim.device import world
from neuron_sim.errors import CoreBusyError
from neuron_sim.runtime import busy_message, claims, cores, usage

_NEED_THE_DEVICE = (
    "_get_xla_tensors_hlo",
    "_xla_device_kind",
    "_xla_get_all_devices",
    "_xla_get_cpu_tensors",
    "_xla_get_default_device",
    "_xla_get_default_device_ordinal",
    "_xla_get_device_hw_type",
    "_xla_get_device_ordinal",
    "_xla_get_devices",
    "_xla_get_num_processes",
    "_xla_get_process_index",
    "_xla_get_replication_devices",
    "_xla_get_replication_devices_count",
    "_xla_num_global_devices",
    "_xla_real_devices",
    "_xla_set_default_device",
    "_xla_set_replication_devices",
    "_xla_step_marker",
    "_xla_sync_live_tensors",
    "_xla_sync_multi",
    "_xla_wait_device_ops",
)

_current: settings.Settings
_claimed = False
"""Also true in forked children of a process that has claimed: they share its cores."""


def install(current: settings.Settings) -> None:
    """Wrap the functions; after everybody else who replaces some of them."""
    global _current
    _current = current
    for name in _NEED_THE_DEVICE:
        if (original := getattr(_XLAC, name, None)) is not None:
            setattr(_XLAC, name, _claiming(name, original))


def claim() -> None:
    """Hold this process's cores from now on. Idempotent.

    Raises:
        CoreBusyError: another process holds one of them.
        TopologyError: the host does not have them.
    """
    global _claimed
    if _claimed:
        return
    # Whether the host has a core for each worker at all is said first: it explains more.
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
    usage.begin(_current, held)


def leave() -> None:
    """The script has ended, though its process may wait for others: its cores are free."""
    usage.end()
    claims.release()


def _claiming(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def claims_first(*arguments: Any, **keywords: Any) -> Any:
        if not _claimed:
            claim()
        if getattr(_XLAC, name) is claims_first:
            # From now on there is nothing between the caller and what was there before.
            setattr(_XLAC, name, original)
        return original(*arguments, **keywords)

    return claims_first


def _at_exit(pid: int) -> None:
    if os.getpid() == pid:
        leave()


def _log(message: str) -> None:
    """In the form of the Neuron runtime's own log, for whoever searches logs for it."""
    now = datetime.now(timezone.utc)
    stamp = f"{now:%Y-%b-%d %H:%M:%S.%f}"
    place = f"{os.getpid()}:{os.getpid()}"
    sys.stderr.write(f"{stamp} {place} ERROR   NRT:nrt_allocate_neuron_cores               {message}\n")
