"""Checks whether a process that a server forks would be like a new process, and makes it so.

What an import did may depend on the environment, on where Python looks for modules, and on
the modules installed. A request that differs from the server in something that its imports
have read is refused: the program is then started in the ordinary way.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Read by the loader, the C library and native code when they are loaded, unseen by Python.
_READ_NATIVELY = (
    "ATEN_",
    "BLIS_",
    "C10_",
    "GLIBC_",
    "GOMP_",
    "KMP_",
    "LANG",
    "LC_",
    "LD_",
    "MALLOC_",
    "MKL_",
    "OMP_",
    "OPENBLAS_",
    "PJRT_",
    "PT_",
    "PYTHON",
    "PYTORCH_",
    "TF_",
    "TORCH_",
    "TZ",
    "XLA_",
)
_PATHS = "PYTHONPATH"  # may differ: `Likeness.apply` sets it


class Likeness:
    """What the imports of this process have read and set. Make it before them, and call `imported` after them."""

    def __init__(self) -> None:
        self._before = dict(os.environ)
        self._read: set[str] = set()
        self._set: dict[str, str] = {}
        self._roots: dict[str, int] = {}
        self._own_path = list(sys.path)
        self._modules: frozenset[str] = frozenset()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Note which variables of the environment Python code reads during the block."""
        environment: Any = type(os.environ)
        plain = environment.__getitem__

        def noting(itself: Any, name: str) -> Any:
            self._read.add(name)
            return plain(itself, name)

        environment.__getitem__ = noting
        try:
            yield
        finally:
            environment.__getitem__ = plain

    def imported(self) -> None:
        """Call when all imports are done."""
        self._set = {name: value for name, value in os.environ.items() if self._before.get(name) != value}
        self._roots = {path: _changed_ns(path) for path in sys.path if Path(path).is_dir()}
        self._modules = frozenset(name.partition(".")[0] for name in sys.modules)

    def difference(self, environment: dict[str, str]) -> str | None:
        """Why a forked process would differ from a new one with this environment; None: it would not."""
        for name in sorted({*environment, *self._before}):
            if name == _PATHS or environment.get(name) == self._before.get(name):
                continue
            if name in self._read or name.startswith(_READ_NATIVELY):
                return f"{name} is not as it was when modules were imported"
        for path, changed_ns in self._roots.items():
            if not path.startswith(tempfile.gettempdir()) and _changed_ns(path) != changed_ns:
                return f"modules were installed in {path}"
        return self._shadowing(environment)

    def apply(self, arguments: list[str], environment: dict[str, str]) -> None:
        """Make this (forked) process what a new one would be after the same imports."""
        os.environ.clear()
        os.environ.update(environment)
        os.environ.update(self._set)
        sys.argv = list(arguments)
        wanted = [str(Path(arguments[0]).parent), *_entries(environment), *self._own_path, *sys.path]
        sys.path[:] = dict.fromkeys(wanted)
        for path in sys.path:
            # A folder of generated modules that torch made when it was imported.
            if path.startswith(tempfile.gettempdir() + os.sep):
                with contextlib.suppress(OSError):
                    Path(path).mkdir(parents=True, exist_ok=True)

    def _shadowing(self, environment: dict[str, str]) -> str | None:
        """Why a folder of PYTHONPATH would hide a module that was imported here; None: none does."""
        for path in _entries(environment):
            if path in self._roots:
                continue
            hidden = _modules_in(path) & self._modules
            if hidden:
                return f"{path} has a module {min(hidden)} of its own"
        return None


def _modules_in(path: str) -> set[str]:
    """The names of the modules in a folder, which hide those of later folders."""
    try:
        found = list(Path(path).iterdir())
    except OSError:
        return set()
    files = {entry.name.partition(".")[0] for entry in found if entry.suffix in (".py", ".pyc", ".so")}
    return files | {entry.name for entry in found if (entry / "__init__.py").is_file()}


def _entries(environment: dict[str, str]) -> list[str]:
    return [path for path in environment.get(_PATHS, "").split(os.pathsep) if path]


def _changed_ns(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0
