"""Places traced modules on cores: the choice is checked against the existing cores, and remembered.

All simulated cores of a host are its CPUs, so the place changes no result and no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from neuron_sim import settings
from neuron_sim.runtime import cores


def visible_cores() -> int:
    """How many cores this process may use: those of NEURON_RT_VISIBLE_CORES or NUM_CORES, else all."""
    current = settings.read()
    return cores.request(settings.core_wish(), current.cores, current.instance_type).count


def cores_of(device_ids: Sequence[int | str] | None) -> list[int]:
    """Cores by number or as 'nc:0'.

    Raises:
        ValueError: a core is not one of this process.
    """
    count = visible_cores()
    if device_ids is None:
        return list(range(count))
    return [_core(int(str(device).removeprefix("nc:")), count) for device in device_ids]


def _core(core: int, count: int) -> int:
    if not 0 <= core < count:
        raise ValueError(
            f"NeuronCore {core} is none of this process's {count}: give a number from 0 to {count - 1}"
        )
    return core


def move_trace_to_device(trace: Any, device_id: int) -> None:
    """Put a traced module on a core. Raises ValueError when there is no such core."""
    trace.expectation.start_core = _core(device_id, visible_cores())


def lazy_load(trace: Any, enable_lazy_load: bool = True) -> None:
    """Load at the first call instead of in torch.jit.load; kept with the saved module."""
    trace.expectation.lazy = enable_lazy_load


def async_load(trace: Any, enable_async_load: bool = True) -> None:
    """Load in the background; kept with the saved module."""
    trace.expectation.asynchronous = enable_async_load


def set_neuron_cores(trace: Any, start_nc: int = -1, nc_count: int = -1) -> None:
    """Put a traced module on ``nc_count`` cores from ``start_nc``. Raises ValueError when there are not so many."""
    _expect_cores(start_nc, nc_count)
    trace.expectation.start_core = start_nc
    trace.expectation.cores = max(nc_count, 1)


def set_multicore(trace: Any) -> None:
    """Put a traced module on all cores."""
    set_neuron_cores(trace, 0, visible_cores())


@contextmanager
def neuron_cores_context(start_nc: int = -1, nc_count: int = -1) -> Iterator[None]:
    """Modules that torch.jit.load loads meanwhile go to these cores. Raises ValueError when there are not so many."""
    _expect_cores(start_nc, nc_count)
    yield


@contextmanager
def multicore_context() -> Iterator[None]:
    """Modules that torch.jit.load loads meanwhile go to all cores."""
    yield


def _expect_cores(start: int, count: int) -> None:
    visible = visible_cores()
    if count == 0 or count < -1 or max(start, 0) + max(count, 1) > visible or start < -1:
        raise ValueError(
            f"start_nc={start}, nc_count={count} are not NeuronCores of this process, which has {visible}: "
            "-1 leaves the choice to the runtime"
        )
