"""Imports once what all workers would import, before any of them exists.

Safe to fork is only what has no XLA client and no threads of its own. The script's
own modules are left alone: they may touch the device when imported. So is an installed
one that asks, when imported, which worker it is in.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from neuron_sim.hooks import activation
from neuron_sim.launcher import interpreter
from neuron_sim.launcher.script_imports import imports, local
from neuron_sim.launcher.unimported import Absent, modules_of

_TORCH_XLA = "torch_xla"
_bring_it = {_TORCH_XLA}
"""What the script imports that imports torch_xla in turn (accelerate)."""
_brought: list[str] = []
"""All modules of these. Gone through once, before the fork: a worker that looks at 2,300 names has the memory of each
of them to itself from then on, 4 MiB.
"""
_logging_calls: list[dict[str, Any]] = []
_variables: dict[str, str] = {}
"""What torch_xla's import does besides: its calls of `logging.basicConfig`, and what it adds to the environment."""

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


# torchrun tells these to each worker, and to nobody else.
_WORKERS_OWN = frozenset(
    {
        "RANK",
        "LOCAL_RANK",
        "GROUP_RANK",
        "ROLE_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "GROUP_WORLD_SIZE",
        "ROLE_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
    }
)


class _IsForWorkers(BaseException):
    """An import has asked which worker it is in. No library's `except Exception` takes it for an error of its own."""


@contextlib.contextmanager
def _imports_for_workers_end() -> Iterator[None]:
    """Have a module that asks for what torchrun tells each worker not be imported here, nor those that import it.

    transformers' `training_args` makes the group of processes so, and a library may keep its rank in a variable.
    """
    environment = type(os.environ)
    read = environment.__getitem__
    before = set(sys.modules)
    unfinished: set[str] = set()

    def read_or_end(variables: Any, name: str) -> str:
        if variables is os.environ and (name in _WORKERS_OWN or str(name).startswith("TORCHELASTIC_")):
            unfinished.update(
                name for name, module in list(sys.modules.items()) if _is_being_imported(module)
            )
            raise _IsForWorkers(name)
        return read(variables, name)

    environment.__getitem__ = read_or_end  # type: ignore[method-assign]
    try:
        yield
    finally:
        environment.__getitem__ = read  # type: ignore[method-assign]
        _forget(unfinished, before)


def _is_being_imported(module: Any) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _forget(unfinished: set[str], before: set[str]) -> None:
    """Leave modules to the workers, also where a bare `except:` took the end of their import for an error.

    With what a package among them has imported of itself: a package that is imported anew gets no attribute for a
    module that is there already. Compiled modules stay, some of which cannot be made twice.
    """
    below = tuple(f"{name}." for name in unfinished)
    for name in set(sys.modules) - before:
        is_source = str(getattr(sys.modules[name], "__file__", "")).endswith(".py")
        if name in unfinished or (is_source and name.startswith(below)):
            module = sys.modules.pop(name)
            package, _, last = name.rpartition(".")
            if vars(sys.modules.get(package, os)).get(last) is module:
                delattr(sys.modules[package], last)


@contextlib.contextmanager
def no_gpu_counted() -> Iterator[None]:
    """Without asking CUDA for GPUs, after which torch blames the fork where a script's `.cuda()` fails."""
    import torch

    if not hasattr(torch._C, "_cuda_getDeviceCount"):  # PyTorch's builds for CPU, which never ask
        yield
        return
    count, torch._C._cuda_getDeviceCount = torch._C._cuda_getDeviceCount, lambda: 0
    try:
        yield
    finally:
        torch._C._cuda_getDeviceCount = count


@no_gpu_counted()
@interpreter.importing()
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
        torch_xla = Absent(modules_of([_TORCH_XLA]), functools.partial(_bring_it.add, module))
        try:
            with _imports_for_workers_end():
                loaded = importlib.import_module(module)
                for name in names:
                    with contextlib.suppress(_IsForWorkers):
                        # Lazy packages (transformers) import the real module at this access.
                        getattr(loaded, name, None)
        except (Exception, _IsForWorkers):  # noqa: BLE001, S112 - any import error is the script's to show
            continue
        finally:
            torch_xla.bring_back()
        imported.append(module)
    _brought[:] = modules_of(_bring_it)
    return imported


def core() -> None:
    """Import torch_xla and what makes a process a core, without becoming one. Idempotent.

    What that import does besides waits for `until_imported`.
    """
    before = dict(os.environ)
    configure, logging.basicConfig = logging.basicConfig, lambda **how: _logging_calls.append(how)
    try:
        activation.preload()
        from neuron_sim.hooks import table  # noqa: F401 - with all that is in the table
    finally:
        logging.basicConfig = configure
    _variables.update((name, value) for name, value in os.environ.items() if name not in before)


def until_imported(then: Callable[[], None]) -> Absent:
    """In a worker: torch_xla is not imported until the script does it; ``then`` follows."""
    for name, value in _variables.items():
        if os.environ.get(name) == value:
            del os.environ[name]

    def imported() -> None:
        for name, value in _variables.items():
            os.environ.setdefault(name, value)
        for how in _logging_calls:
            logging.basicConfig(**how)
        then()

    return Absent(_brought, imported)


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
