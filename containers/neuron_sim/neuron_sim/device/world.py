"""World size, ordinals and device kind, where torch_xla's Python asks its C++ part.

XLA's CPU client knows one process with one device. torch_xla's Python layers call
`torch_xla._XLAC._xla_*` by attribute at each use, so replacing these functions is
enough, and everything above them stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import _XLAC

from neuron_sim import settings
from neuron_sim.errors import TopologyError
from neuron_sim.settings import Identity

DEVICE_TYPE = "NEURON"


_current: settings.Settings


def start(current: settings.Settings) -> None:
    """Set which instance this process plays a core of."""
    global _current
    _current = current


def me() -> Identity:
    """This core's identity. Call late: `xmp.spawn` sets the ordinal after the import.

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


def size_unless_alone() -> int:
    """How many cores the job has; for one alone 0, as a single process answers, which makes `xr.world_size()` 1."""
    size = me().world_size
    return size if size > 1 else 0


def own_device() -> list[str]:
    """This core as a device."""
    return [f"{DEVICE_TYPE}:{me().rank}"]


def all_devices() -> list[str]:
    """All cores of the job as devices."""
    return [f"{DEVICE_TYPE}:{number}" for number in range(me().world_size)]


def around_device_kind(kind: Callable[[str], str]) -> Callable[..., str]:
    """Decorate torch_xla's function: answer the instance's device kind, for a device that exists."""

    def device_kind(device: str = "") -> str:
        kind(device or str(_XLAC._xla_get_default_device()))
        return _current.instance.device_kind

    return device_kind
