"""Imports once what all workers would import, before any of them exists.

Safe to fork is only what has no XLA client and no threads of its own. The script's
own modules are left alone: they may touch the device when imported.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
import threading
from pathlib import Path

from neuron_sim.hooks import activation
from neuron_sim.launcher.script_imports import imports, local

# Not safe to fork, or pointless: they start threads or processes when imported, or hold a client of their own.
_NEVER = frozenset(
    {
        "clearml",
        "comet_ml",
        "dask",
        "distributed",
        "grpc",
        "horovod",
        "jax",
        "keras",
        "libneuronxla",
        "mlflow",
        "neptune",
        "pyspark",
        "ray",
        "tensorflow",
        "torch_neuronx",
        "wandb",
    }
)


def warm_up(script: Path) -> list[str]:
    """Import torch_xla and the installed modules that the script imports at its top level.

    Returns the names imported. A module that fails to import is left to the workers,
    where the script shows the error in its own place.
    """
    wanted = imports(script)
    core()
    imported = []
    for module, names in wanted:
        if module.partition(".")[0] in _NEVER or not _installed(module.partition(".")[0], script.parent):
            continue
        try:
            loaded = importlib.import_module(module)
            for name in names:
                # Lazy packages (transformers) import the real module at this access.
                getattr(loaded, name, None)
        except Exception:  # noqa: BLE001, S112 - any import error is the script's to show
            continue
        imported.append(module)
    # The workers share these objects' memory as long as nobody writes to it: not even the collector.
    gc.collect()
    gc.freeze()
    return imported


def core() -> None:
    """Import torch_xla and what makes a process a core, without becoming one. Idempotent."""
    activation.preload()
    from neuron_sim.hooks import table  # noqa: F401 - with all that is in the table


def safe_to_fork() -> bool:
    """Whether this process has neither an XLA client nor another Python thread."""
    import _XLAC

    return not _XLAC._xla_runtime_is_initialized() and threading.active_count() == 1


def _installed(name: str, beside: Path) -> bool:
    """Whether a top-level name comes from an installed package, and not from beside the script."""
    if name in sys.stdlib_module_names or local(name, beside) is not None:
        return False
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and "site-packages" in (spec.origin or "")
