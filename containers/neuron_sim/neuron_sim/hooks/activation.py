"""Makes this process a simulated NeuronCore.

torch_xla finds the module `libneuronxla`, imports `torch_neuronx.xla` and calls
its `init()` early in its own import; `init` calls `on_import`. The rest needs all
of torch_xla, so it runs when that import ends: `activate`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from neuron_sim.hooks import deferred
from neuron_sim.hooks.after_import import after_import
from neuron_sim.settings import WITHOUT_FUNCTIONALIZATION

_DEVICE_TYPE = "NEURON"
_CLIENT = "CPU"

# Child processes inherit PJRT_DEVICE=CPU from the C environment. This second variable tells them that the script has
# not asked for the CPU.
_MARK = "NEURON_SIM_DEVICE"

# torch-neuronx turns functionalization off by default, and scripts may set it either way. Here XLA's C++ code always
# has it on: only then does a tensor that a hook has replaced reach its views. `diagnostics.wrong_splits` reports what
# differs. Like _MARK, this variable tells child processes what was asked for.
_ASKED = "NEURON_SIM_FUNCTIONALIZATION_DISABLED"

# The last module that `torch_xla/__init__.py` imports: by then, each module in which we replace something is loaded.
_LAST_IMPORT = "torch_xla._internal.c10d_registration"

# Set by our launcher while it imports torch_xla for its workers, before there is a rank.
_preloading = False
_configured = False
_active = False


def preload() -> None:
    """Import torch_xla without becoming a core; the forked workers call `activate` themselves."""
    global _preloading
    _preloading = True
    imported = deferred.compilers()
    try:
        import torch_xla
        import torch_xla.core.xla_model
        import torch_xla.distributed.parallel_loader
        import torch_xla.distributed.xla_backend
        import torch_xla.runtime  # noqa: F401
    finally:
        imported()
        _preloading = False


def on_import() -> None:
    """Called by torch_xla's hook in the middle of its import."""
    if not _wanted():
        return
    _separate_device_type()
    if not _preloading:
        _configure_process()
        after_import(_LAST_IMPORT, deferred.compilers())
        after_import(_LAST_IMPORT, activate)


def activate() -> None:
    """Become the core that the environment names. Idempotent."""
    global _active
    if _active or not _wanted():
        return
    _active = True
    _separate_device_type()
    _configure_process()
    # Imported here: the table needs all of torch_xla.
    from neuron_sim import settings
    from neuron_sim.hooks import table

    table.become_core(settings.read())


def initialize() -> None:
    """Read rank and world size from the environment, if not done yet: for scripts that start workers themselves."""
    if not _wanted():
        return
    from torch_xla._internal import neuron

    neuron.set_envvar_defaults()
    if "NEURON_PJRT_PROCESS_INDEX" not in os.environ:
        neuron.configure_pjrt_environment()


def _wanted() -> bool:
    """Whether this process shall be a core: not if the script asks for another device, such as PJRT_DEVICE=CPU."""
    asked = os.environ.get("PJRT_DEVICE", _DEVICE_TYPE)
    return asked == _DEVICE_TYPE or (asked == _CLIENT and os.environ.get(_MARK) == _DEVICE_TYPE)


def _separate_device_type() -> None:
    """Have Python see PJRT_DEVICE=NEURON and XLA's C++ code see CPU, with functionalization always on.

    Python's layers branch on the device type and must take the Neuron branch; the
    C++ client factory knows no simulated device. `os.environ` and the process's C
    environment are separate: a change of the first calls `os.putenv` for the second.
    """
    if getattr(os.putenv, "device_type_separated", False):
        os.environ["PJRT_DEVICE"] = _DEVICE_TYPE
        return
    original = os.putenv

    def putenv(name: bytes | str, value: bytes | str) -> None:
        if os.fsencode(name) == b"PJRT_DEVICE":
            simulated = os.fsencode(value) == _DEVICE_TYPE.encode()
            original(_MARK, _DEVICE_TYPE if simulated else "")
            value = _CLIENT if simulated else value
        elif os.fsencode(name) == WITHOUT_FUNCTIONALIZATION.encode():
            original(_ASKED, value)
            value = "0"
        original(name, value)

    putenv.device_type_separated = True  # type: ignore[attr-defined]
    os.putenv = putenv  # type: ignore[assignment]
    os.environ["PJRT_DEVICE"] = _DEVICE_TYPE
    if (found := os.environ.get(WITHOUT_FUNCTIONALIZATION)) is not None:
        os.environ[WITHOUT_FUNCTIONALIZATION] = os.environ.pop(_ASKED, found)  # again, for the C environment


def _configure_process() -> None:
    """Set the Neuron variables that torchrun's ranks imply, as torch_neuronx does. Once: a second time would fail."""
    global _configured
    if _configured:
        return
    _configured = True
    from torch_xla._internal import neuron

    neuron.set_envvar_defaults()
    if not _is_helper():
        with _own_core_kept():
            neuron.configure_pjrt_environment()


@contextlib.contextmanager
def _own_core_kept() -> Iterator[None]:
    """Keep the one core that a launcher such as Ray Train has named for this worker.

    torch_xla expects the variable to name the cores of all workers of the host, as under torchrun, and raises if it
    names fewer. On trn1 such workers run (ray-project/ray#65070, on a trn1.32xlarge).
    """
    name = "NEURON_RT_VISIBLE_CORES"
    given = os.environ.get(name, "")
    by_torchrun = "TORCHELASTIC_RESTART_COUNT" in os.environ
    if by_torchrun or not given.isdigit():
        yield
        return
    del os.environ[name]
    try:
        yield
    finally:
        os.environ[name] = given


def _is_helper() -> bool:
    """Whether a core's own script has started this process, for example as a spawned worker of a DataLoader.

    Its environment is configured already; torch_xla raises if that is done again.
    """
    pairs = (("RANK", "NEURON_PJRT_PROCESS_INDEX"), ("WORLD_SIZE", "NEURON_PJRT_WORLD_SIZE"))
    return all(name in os.environ and os.environ[name] == os.environ.get(ours) for name, ours in pairs)
