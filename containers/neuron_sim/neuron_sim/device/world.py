"""World size, ordinals and device kind, where torch_xla's Python asks its C++ part.

XLA's CPU client knows one process with one device. torch_xla's Python layers call
`torch_xla._XLAC._xla_*` by attribute at each use, so replacing these functions is
enough, and everything above them stays as it is.
"""

from __future__ import annotations

from typing import Any

import _XLAC

from neuron_sim import settings
from neuron_sim.errors import TopologyError
from neuron_sim.settings import Identity

DEVICE_TYPE = "NEURON"


_current: settings.Settings


def install(current: settings.Settings) -> None:
    """Replace what a lone process answers by what a core of this job would."""
    global _current
    _current = current
    for name, replacement in _replacements().items():
        setattr(_XLAC, name, replacement)


def me() -> Identity:
    """This core; read late, because `xmp.spawn` sets the ordinal after the import.

    Raises:
        TopologyError: this host has more workers than the instance has cores.
    """
    identity = settings.identity()
    if identity.local_world_size > _current.cores:
        raise TopologyError(
            f"{identity.local_world_size} workers need a NeuronCore each, but {_current.instance_type} has "
            f"{_current.cores} here. Start at most {_current.cores} (torchrun --nproc_per_node), "
            "or choose a larger instance_type."
        )
    return identity


def _replacements() -> dict[str, Any]:
    local_kind = _XLAC._xla_device_kind

    def all_devices() -> list[str]:
        return [f"{DEVICE_TYPE}:{rank}" for rank in range(me().world_size)]

    def replication_devices_count() -> int:
        # 0 is what a single process answers, and makes `xr.world_size()` 1.
        world = me().world_size
        return world if world > 1 else 0

    def real_devices() -> list[str]:
        return [f"{DEVICE_TYPE}:{me().rank}"]

    def device_kind(device: str = "") -> str:
        local_kind(device or str(_XLAC._xla_get_default_device()))
        return _current.instance.device_kind

    return {
        "_xla_get_devices": real_devices,
        "_xla_get_all_devices": all_devices,
        "_xla_num_global_devices": lambda: me().world_size,
        "_xla_get_replication_devices_count": replication_devices_count,
        "_xla_get_replication_devices": all_devices,
        "_xla_set_replication_devices": lambda devices: None,
        "_xla_get_default_device_ordinal": lambda: me().rank,
        "_xla_get_device_ordinal": lambda device: me().rank,
        "_xla_get_process_index": lambda: me().rank,
        "_xla_get_num_processes": lambda: me().world_size,
        "_xla_real_devices": real_devices,
        "_xla_get_device_hw_type": lambda device: DEVICE_TYPE,
        "_xla_device_kind": device_kind,
    }
