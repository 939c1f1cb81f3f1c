"""Imports once what all workers would import, before any of them exists.

A process can be forked safely only while it has no XLA client and no other threads. The
script's own modules are not imported here, since they may touch the device; nor are
installed modules that ask for their worker's rank when imported.
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
from neuron_sim.launcher.script_imports import WORKERS_VARIABLES, imports, local
from neuron_sim.launcher.unimported import Absent, modules_of

_TORCH_XLA = "torch_xla"
_bring_it = {_TORCH_XLA}
"""The script's imports that import torch_xla in turn (accelerate)."""
_brought: list[str] = []
"""All modules of these packages. Listed once, before the fork: a worker that read all 2,300 names would get its own
copy of their memory, 4 MiB.
"""
_logging_calls: list[dict[str, Any]] = []
_variables: dict[str, str] = {}
"""Side effects of torch_xla's import, kept for later: its calls of `logging.basicConfig`, and variables it sets."""

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


class _IsForWorkers(BaseException):
    """Raised when an import asks for its worker's rank. A library's `except Exception` does not catch it."""


@contextlib.contextmanager
def _imports_for_workers_end() -> Iterator[None]:
    """End the import of a module that reads a variable of torchrun's workers, and of all modules that import it.

    transformers' `training_args` makes the process group at import, and a library may keep its rank in a variable.
    """
    environment = type(os.environ)
    read = environment.__getitem__
    before = set(sys.modules)
    unfinished: set[str] = set()

    def read_or_end(variables: Any, name: str) -> str:
        if variables is os.environ and (name in WORKERS_VARIABLES or str(name).startswith("TORCHELASTIC_")):
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
    """Remove modules whose import was ended, so that workers import them; also if a bare `except:` hid that end.

    The submodules of such a package go too: when imported again, a package gets no attribute for a submodule that is
    loaded already. Compiled modules stay: some cannot be initialised twice.
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
    """Keep torch from asking CUDA for GPUs: after that it would blame the fork when a script's `.cuda()` fails."""
    import torch

    if not hasattr(torch._C, "_cuda_getDeviceCount"):  # a CPU build of PyTorch, which never asks
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

    The import's side effects wait for `until_imported`.
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
    """In a worker: make torch_xla look unimported until the script imports it, then call ``then``."""
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
